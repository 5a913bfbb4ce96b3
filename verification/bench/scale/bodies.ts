import { join } from 'node:path'
import { programOf } from '../calls.js'
import { spawnOnServerCore } from '../cores.js'
import type { Servers } from '../protection.js'
import { ratioOf, type Spread, spreadOf } from '../statistics.js'
import { bytesCell, spreadCell } from '../table.js'
import { type Chapter, formatTimes, toSteps } from './chapter.js'
import type { FingerprintTimes } from './fingerprints.js'
import type { FingerprintCalls } from './fingerprints.main.js'
import { type Ground, measureSlices, type Sliced, startEmptyService } from './slices.js'

const MIB = 2 ** 20

/** What a fingerprint by value takes, compared with `JSON.parse` of the same body, which every request takes anyway. */
export async function measureFingerprints(ground: Ground, sizes: readonly number[]): Promise<Chapter> {
  const child = spawnOnServerCore(process.execPath, [join(process.cwd(), 'build/bench/fingerprints.js')], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const program = programOf<FingerprintCalls>(child, 'The program of fingerprints')
  const all: FingerprintTimes[] = []
  try {
    for (const bytes of sizes) {
      ground.tell(`fingerprints of ${bytesCell(bytes)}`)
      all.push(await program.call('timeFingerprints', { bytes, rounds: ground.rounds }))
    }
  } finally {
    await program.end()
  }
  const perMib = (millis: readonly number[] = [], size = 0) => spreadOf(millis.map((each) => (each * MIB) / size))
  const fingerprints = sizes.map((size, i) => perMib(all[i]?.fingerprint, size))
  const parses = sizes.map((size, i) => perMib(all[i]?.parse, size))
  const ratios = all.map(({ fingerprint, parse }) => ratioOf(fingerprint, parse))
  return {
    name: 'fingerprints',
    heading: 'The fingerprint of a large body',
    sentence:
      `A fingerprint by value of ${bytesCell(sizes.at(-1) ?? 0)} of JSON takes ${medianOf(fingerprints.at(-1)).toFixed(1)} ms, ` +
      `which is ${formatTimes(medianOf(ratios.at(-1)))} times what \`JSON.parse\` of the same text takes.`,
    chart: {
      title: 'CPU time of a fingerprint by value',
      xAxis: 'size of the body',
      yAxis: 'ms a MiB',
      steps: toSteps(sizes, bytesCell),
      lines: [
        { label: 'fingerprint', values: fingerprints.map(({ median }) => median) },
        { label: 'JSON.parse', values: parses.map(({ median }) => median) },
      ],
    },
    table: {
      columns: ['body', 'fingerprint, ms a MiB', 'JSON.parse, ms a MiB', '×'],
      rows: sizes.map((size, i) => [
        bytesCell(size),
        ...[fingerprints[i], parses[i], ratios[i]].map((spread) => spreadCell(spread ?? NONE, 2)),
      ]),
    },
  }
}

/** What a replay of a large response takes, compared with a handler that sends the same bytes from a buffer. */
export async function measureReplays(ground: Ground, sizes: readonly number[], servers: Servers): Promise<Chapter> {
  const ratios: Spread[] = []
  for (const size of sizes) ratios.push(await measureReplay(ground, size, servers))
  return {
    name: 'replays',
    heading: 'A replay of a large response',
    sentence:
      `A replay of ${bytesCell(sizes.at(-1) ?? 0)} from memory takes ${formatTimes(medianOf(ratios.at(-1)))} times the CPU time of ` +
      'sending the same bytes from a buffer.',
    chart: {
      title: 'CPU time of a replay',
      xAxis: 'size of the response',
      yAxis: '× sending a buffer',
      steps: toSteps(sizes, bytesCell),
      lines: [{ label: 'replay from memory', values: ratios.map(({ median }) => median) }],
    },
    table: {
      columns: ['response', 'replay, × sending a buffer'],
      rows: sizes.map((size, i) => [bytesCell(size), spreadCell(ratios[i] ?? NONE, 2)]),
    },
  }
}

/** The CPU time of a replay of so many bytes, as a ratio to sending them from a buffer. `program`: where the service was built. */
export async function measureReplay(
  ground: Ground,
  answerBytes: number,
  servers: Servers,
  program?: string,
): Promise<Spread> {
  const names = ['ours-memory', 'bare-buffer'] as const
  const services = await Promise.all(names.map((name) => startEmptyService(name, servers, answerBytes, program)))
  try {
    // One response, since the handler has one buffer: many would be read from memory instead of the processor's cache.
    const sliced = services.map(
      (service, i): Sliced => ({ name: names[i] as string, service, phase: 'replay', answers: 1 }),
    )
    const micros = await measureSlices(sliced, ground)
    return ratioOf(micros('ours-memory'), micros('bare-buffer'))
  } finally {
    for (const service of services) await service.end()
  }
}

const NONE: Spread = { median: Number.NaN, least: Number.NaN, most: Number.NaN }

function medianOf(spread = NONE): number {
  return spread.median
}
