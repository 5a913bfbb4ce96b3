import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { type Bar, chartOf, type Panel } from './chart.js'
import { PINNING } from './cores.js'
import type { Traffic, TrafficRow } from './sections/traffic.js'
import type { Settings } from './settings.js'
import { asMarkdown, asText, type Table } from './table.js'

/** What the figures were measured on, as they must be read. */
export function setUpOf({ rounds, seconds }: Settings, servers: readonly string[], today: Date): readonly string[] {
  return [
    `${today.toISOString().slice(0, 10)}, ${servers.join(', ')}, ${cpus()[0]?.model.trim() ?? 'unknown CPU'}; ${PINNING}; load ${loadavg()[1]?.toFixed(1)}.`,
    `32 connections of a client that never sleeps; 200 B of JSON in, 201 with 150 B of JSON out; at most ${rounds} rounds of ${seconds} s each, all variants in turn; each table says how many.`,
    'Figures are to be compared within one run only.',
  ]
}

/** Everything as text on the console, and as files under build/bench. */
export async function writeReport(
  setUp: readonly string[],
  tables: readonly Table[],
  traffic: readonly Traffic[],
): Promise<void> {
  console.log(`\n${[...setUp, ''].join('\n')}\n${tables.map(asText).join('\n')}`)
  await mkdir('build/bench', { recursive: true })
  await writeFile('build/bench/bench.md', `${setUp.join('\n')}\n\n${tables.map(asMarkdown).join('\n')}`)
  await writeFile('build/bench/bench.json', JSON.stringify({ setUp, tables }, null, 2))
  const written = ['build/bench/bench.md', 'build/bench/bench.json']
  const newest = traffic.at(-1)?.node
  const panels = traffic.filter(({ node }) => node === newest).flatMap(panelsOf)
  if (panels.length > 0) {
    await writeFile('build/bench/bench.svg', chartOf('Server CPU per request: less is better', 'µs', panels))
    written.push('build/bench/bench.svg')
  }
  console.log(`Written: ${written.join(', ')}`)
}

function panelsOf({ phase, node, rows }: Traffic): Panel[] {
  const what = phase === 'first' ? 'first execution' : 'replay'
  return (['memory', 'redis'] as const).map((store) => ({
    title: `${store === 'memory' ? 'Memory' : 'Redis'}, ${what}, Node ${node.version}`,
    bars: rows.filter(({ variant }) => variant.store === store || variant.kind === 'bare').map(barOf),
  }))
}

function barOf({ variant, cpuMicros }: TrafficRow): Bar {
  const { label, kind } = variant
  return { label, value: cpuMicros.median, emphasis: kind === 'bare' ? 'floor' : kind }
}
