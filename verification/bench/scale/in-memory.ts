import { ANSWER_BYTES } from '../payout.js'
import type { Servers } from '../protection.js'
import type { Service } from '../service.js'
import { ratioOf } from '../statistics.js'
import { countCell, spreadCell } from '../table.js'
import { type Chapter, formatCount, formatTimes, type Growth, toFirstAndReplayLines, toSteps } from './chapter.js'
import { type Ground, measureSlices, type Sliced, startEmptyService } from './slices.js'

/** A service among so many keys, and what was seen of it. */
interface Filled {
  readonly keys: number
  readonly service: Service
  /** The longest pause of the collector while the keys were stored, one behind another. */
  readonly fillingMs: number
  servingMs: number
  bytesPerRecord: number
}

/** What a request takes among more and more keys in memory, how long the collector pauses, and what a record keeps. */
export async function measureInMemory(ground: Ground, steps: readonly number[], servers: Servers): Promise<Chapter[]> {
  const bare = await startEmptyService('bare', servers)
  const filled: Filled[] = []
  try {
    for (const keys of steps) filled.push(await startFilled(keys, ground, servers))
    const sliced = filled.flatMap(({ keys, service }): Sliced[] => [
      { name: `replay ${keys}`, service, phase: 'replay' },
      { name: `first ${keys}`, service, phase: 'first', prepare: () => refill(service, keys) },
    ])
    // Replays first: they add no keys.
    const isReplay = ({ phase }: Sliced) => phase === 'replay'
    const besides: Sliced = { name: 'bare', service: bare, phase: 'first' }
    const replay = await measureSlices([besides, ...sliced.filter(isReplay)], ground)
    const first = await measureSlices([besides, ...sliced.filter((each) => !isReplay(each))], ground)
    for (const each of filled) {
      each.servingMs = longest(await each.service.call('collections'))
      each.bytesPerRecord = await measureBytes(each, ground)
    }
    const ratios = steps.map((keys) => ({
      keys,
      first: ratioOf(first(`first ${keys}`), first('bare')),
      replay: ratioOf(replay(`replay ${keys}`), replay('bare')),
    }))
    const [from = 0, to = 0] = [steps[0], steps.at(-1)]
    const times = ratioOf(first(`first ${to}`), first(`first ${from}`)).median
    return [cpuChapter(ratios, { times, from, to }), pausesChapter(filled), bytesChapter(filled)]
  } finally {
    for (const { service } of [{ service: bare }, ...filled]) await service.end()
  }
}

async function startFilled(keys: number, { tell }: Ground, servers: Servers): Promise<Filled> {
  tell(`filling the memory with ${formatCount(keys)} keys`)
  const service = await startEmptyService('ours-memory', servers)
  await service.call('collections')
  await service.call('fill', keys)
  const fillingMs = longest(await service.call('collections'))
  return { keys, service, fillingMs, servingMs: 0, bytesPerRecord: Number.NaN }
}

/** A slice adds thousands of keys: where those would be more than there were, the store begins again. */
const MOST_ADDED = 10_000

async function refill(service: Service, keys: number): Promise<void> {
  if (keys > MOST_ADDED) return
  await service.call('reset', EMPTY)
  await service.call('fill', keys)
}

const EMPTY = { phase: 'first', answerBytes: ANSWER_BYTES } as const

/** After collections, compared with the same process without its keys. */
async function measureBytes({ keys, service }: Filled, { tell }: Ground): Promise<number> {
  tell(`bytes a record, of ${formatCount(keys)}`)
  await service.call('reset', EMPTY)
  await service.call('fill', Math.min(keys, MOST_ADDED)) // What is compiled for it is no record's.
  await service.call('reset', EMPTY)
  const before = await service.call('memory')
  await service.call('fill', keys)
  return ((await service.call('memory')) - before) / keys
}

function longest(collections: readonly number[]): number {
  return Math.max(0, ...collections)
}

type Ratio = { readonly keys: number } & Readonly<Record<'first' | 'replay', ReturnType<typeof ratioOf>>>

function cpuChapter(ratios: readonly Ratio[], growth: Growth): Chapter {
  return {
    name: 'memory',
    heading: 'A request among many keys in memory',
    sentence: `Among ${formatCount(growth.to)} keys a first request takes ${formatTimes(growth.times)} times the CPU time of one among ${formatCount(growth.from)}.`,
    growth,
    chart: {
      title: 'CPU time of a request, in memory',
      xAxis: 'live keys',
      yAxis: '× unprotected Express',
      steps: toSteps(ratios.map(({ keys }) => keys)),
      lines: toFirstAndReplayLines(ratios),
    },
    table: {
      columns: ['live keys', 'first request, × Express', 'replay, × Express'],
      rows: ratios.map(({ keys, first, replay }) => [formatCount(keys), spreadCell(first, 2), spreadCell(replay, 2)]),
    },
  }
}

function pausesChapter(filled: readonly Filled[]): Chapter {
  const last = filled.at(-1)
  return {
    name: 'pauses',
    heading: 'Pauses of the garbage collector',
    sentence:
      `With ${formatCount(last?.keys ?? 0)} keys the longest pause under load was ${formatMs(last?.servingMs)} ms, and ` +
      `${formatMs(last?.fillingMs)} ms while they were stored as fast as possible.`,
    chart: {
      title: 'Longest pause of the garbage collector',
      xAxis: 'live keys',
      yAxis: 'ms',
      steps: toSteps(filled.map(({ keys }) => keys)),
      lines: [
        { label: 'under load', values: filled.map(({ servingMs }) => servingMs) },
        { label: 'while storing them', values: filled.map(({ fillingMs }) => fillingMs) },
      ],
    },
    table: {
      columns: ['live keys', 'under load, ms', 'while storing them, ms'],
      rows: filled.map(({ keys, servingMs, fillingMs }) => [
        formatCount(keys),
        formatMs(servingMs),
        formatMs(fillingMs),
      ]),
    },
  }
}

function bytesChapter(filled: readonly Filled[]): Chapter {
  const last = filled.at(-1)
  return {
    name: 'bytes',
    heading: 'Bytes of a record in memory',
    sentence:
      `A record with a response of ${ANSWER_BYTES} B keeps ${countCell(last?.bytesPerRecord ?? Number.NaN)} B among ` +
      `${formatCount(last?.keys ?? 0)}, so these take ${countCell(((last?.bytesPerRecord ?? 0) * (last?.keys ?? 0)) / 2 ** 20)} MiB.`,
    chart: {
      title: 'Memory of a record',
      xAxis: 'live keys',
      yAxis: 'bytes a record',
      steps: toSteps(filled.map(({ keys }) => keys)),
      lines: [{ label: 'completed record', values: filled.map(({ bytesPerRecord }) => bytesPerRecord) }],
    },
    table: {
      columns: ['live keys', 'bytes a record'],
      rows: filled.map(({ keys, bytesPerRecord }) => [formatCount(keys), countCell(bytesPerRecord)]),
    },
  }
}

function formatMs(ms = Number.NaN): string {
  return ms.toFixed(1)
}
