import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { PINNING } from './cores.js'
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
export async function writeReport(setUp: readonly string[], tables: readonly Table[]): Promise<void> {
  console.log(`\n${[...setUp, ''].join('\n')}\n${tables.map(asText).join('\n')}`)
  await mkdir('build/bench', { recursive: true })
  await writeFile('build/bench/bench.md', `${setUp.join('\n')}\n\n${tables.map(asMarkdown).join('\n')}`)
  await writeFile('build/bench/bench.json', JSON.stringify({ setUp, tables }, null, 2))
  console.log('Written: build/bench/bench.md, build/bench/bench.json')
}
