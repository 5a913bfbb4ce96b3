import { QUICKLY_FILLED, STEP_BLOCKS, touchedAmong } from '../../../test/support/postgres-growth.js'
import { startPostgres } from '../../../test/support/postgres-server.js'
import { countCell, type Table } from '../table.js'

const [FEW, MANY] = [1_000, 1_000_000]

/** What each command of the Postgres store touches in a small table and in a large one. */
export async function rowsTable(tell: (progress: string) => void): Promise<Table> {
  tell('rows: Postgres')
  const server = await startPostgres(QUICKLY_FILLED)
  try {
    const [few, many] = [await touchedAmong(FEW, server), await touchedAmong(MANY, server)]
    return {
      title: 'Blocks that a command touches in Postgres, by the number of records',
      columns: ['', countCell(FEW), countCell(MANY), '×', 'how it finds its rows'],
      rows: [...many].map(([name, { blocks, scans }]) => {
        const before = few.get(name)?.blocks ?? Number.NaN
        return [name, countCell(before), countCell(blocks), (blocks / before).toFixed(2), scans.join(', ')]
      }),
      notes: [
        'Of tables and indexes, 8 KiB each, cached or not: EXPLAIN (ANALYZE, BUFFERS), and auto_explain for the statements inside.',
        `A step of list or sweep goes through ${STEP_BLOCKS} blocks of the table; the small table has fewer.`,
      ],
    }
  } finally {
    await server.close()
  }
}
