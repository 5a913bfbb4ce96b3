import { join } from 'node:path'
import { programOf } from '../calls.js'
import { spawnOnServerCore } from '../cores.js'
import type { MicroCalls } from '../micro.main.js'
import type { Ground } from '../rounds.js'
import { type Spread, spreadOf } from '../statistics.js'
import { bytesCell, spreadCell, type Table } from '../table.js'

export interface Micro {
  readonly decideAndSettle: Spread
  readonly table: Table
}

const SIZES = [200, 2_048, 16_384, 131_072, 1_048_576]

/** The library by itself, without HTTP: microseconds. */
export async function measureMicro(ground: Ground, operations: number): Promise<Micro> {
  const args = ['--expose-gc', join(process.cwd(), 'build/bench/micro.js')]
  const child = spawnOnServerCore(process.execPath, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const program = programOf<MicroCalls>(child, 'The micro benchmark')
  ground.tell('micro: decide + settle')
  const decideAndSettle = spreadOf(await program.call('decideAndSettle', operations))
  const rows = [['decide + settle on memory, body of 200 B', spreadCell(decideAndSettle, 2)]]
  for (const bytes of SIZES) {
    ground.tell(`micro: fingerprint, ${bytesCell(bytes)}`)
    const enough = Math.max(20, Math.round((operations * 200) / bytes))
    const micros = spreadOf(await program.call('fingerprint', { bytes, operations: enough }))
    rows.push([`fingerprint, body of ${bytesCell(bytes)}`, spreadCell(micros, 2)])
  }
  rows.push(['(awaiting nothing)', spreadCell(spreadOf(await program.call('nothing', operations)), 3)])
  await program.end()
  return {
    decideAndSettle,
    table: {
      title: 'The library by itself',
      columns: ['', 'CPU µs'],
      rows,
      notes: [
        `One after the other in one process, its collector's threads included; median of nine batches (least–most).`,
      ],
    },
  }
}
