import { mkdir, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { type Bar, chartOf, type Panel } from './chart.js'
import { PINNING } from './cores.js'
import type { TrafficRow } from './sections/traffic.js'
import type { Settings } from './settings.js'
import { asMarkdown, asText, type Table } from './table.js'

/** What the figures were measured on, as they must be read. */
export function setUpOf({ rounds, seconds }: Settings, redisVersion: string, today: Date): readonly string[] {
  return [
    `${today.toISOString().slice(0, 10)}, Node ${process.versions.node}, Redis ${redisVersion}, ${cpus()[0]?.model.trim() ?? 'unknown CPU'}; ${PINNING}.`,
    `autocannon, 32 connections; 200 B of JSON in, 201 with 150 B of JSON out; ${rounds} rounds of ${seconds} s each, all variants in turn.`,
    'Figures are to be compared within one run only.',
  ]
}

/** Everything as text on the console, and as files under build/bench. */
export async function writeReport(
  setUp: readonly string[],
  tables: readonly Table[],
  traffic: { readonly first?: readonly TrafficRow[] | undefined; readonly replay?: readonly TrafficRow[] | undefined },
): Promise<void> {
  console.log(`\n${[...setUp, ''].join('\n')}\n${tables.map(asText).join('\n')}`)
  await mkdir('build/bench', { recursive: true })
  await writeFile('build/bench/bench.md', `${setUp.join('\n')}\n\n${tables.map(asMarkdown).join('\n')}`)
  await writeFile('build/bench/bench.json', JSON.stringify({ setUp, tables }, null, 2))
  const written = ['build/bench/bench.md', 'build/bench/bench.json']
  const panels = [...panelsOf('first execution', traffic.first), ...panelsOf('replay', traffic.replay)]
  if (panels.length > 0) {
    await writeFile('build/bench/bench.svg', chartOf('Server CPU per request: less is better', 'µs', panels))
    written.push('build/bench/bench.svg')
  }
  console.log(`Written: ${written.join(', ')}`)
}

function panelsOf(phase: string, rows: readonly TrafficRow[] | undefined): Panel[] {
  if (rows === undefined) return []
  return (['memory', 'redis'] as const).map((store) => ({
    title: `${store === 'memory' ? 'Memory' : 'Redis'}, ${phase}`,
    bars: rows.filter(({ variant }) => variant.store === store || variant.kind === 'bare').map(barOf),
  }))
}

function barOf({ variant, cpuMicros }: TrafficRow): Bar {
  const { label, kind } = variant
  return { label, value: cpuMicros.median, emphasis: kind === 'bare' ? 'floor' : kind }
}
