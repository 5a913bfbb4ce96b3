import { QUICKLY_FILLED, touchedAmong } from '../../../test/support/postgres-growth.js'
import { startPostgres } from '../../../test/support/postgres-server.js'
import { versionOf } from '../database.js'
import { countCell } from '../table.js'
import { type Chapter, formatCount, toSteps } from './chapter.js'
import { countInMariaDb } from './rows-in-mariadb.js'
import { countInSqlite } from './rows-in-sqlite.js'
import type { Ground } from './slices.js'

/** How many pages a request touches in the table and its indexes, cached or not. */
export interface Pages {
  readonly first: number
  readonly replay: number
}

/** What was counted in one database, at each step. */
export interface Counted {
  readonly database: string
  readonly version: string
  readonly pages: readonly Pages[]
}

/** What a request touches in a table of each database, among more and more rows. */
export async function measureRows({ tell }: Pick<Ground, 'tell'>, steps: readonly number[]): Promise<Chapter> {
  const all: Counted[] = []
  for (const count of [countInPostgres, countInMariaDb, countInSqlite]) {
    tell(`rows: ${count.name}`)
    all.push(await count(steps))
  }
  return rowsChapter(all, steps)
}

async function countInPostgres(steps: readonly number[]): Promise<Counted> {
  const server = await startPostgres(QUICKLY_FILLED)
  try {
    const pages: Pages[] = []
    for (const rows of steps) {
      const touched = await touchedAmong(rows, server)
      const blocks = (...names: string[]) => names.reduce((sum, name) => sum + (touched.get(name)?.blocks ?? 0), 0)
      pages.push({ first: blocks('a claim', 'a completion'), replay: blocks('a replay') })
    }
    return { database: 'Postgres', version: (await versionOf(server)).replace(/ .*/, ''), pages }
  } finally {
    await server.close()
  }
}

function rowsChapter(all: readonly Counted[], steps: readonly number[]): Chapter {
  const growths = all.map(({ pages }) => (pages.at(-1)?.first ?? Number.NaN) / (pages[0]?.first ?? Number.NaN))
  const growth = { times: Math.max(...growths), from: steps[0] ?? 0, to: steps.at(-1) ?? 0 }
  return {
    name: 'rows',
    heading: 'Pages that a request touches in an SQL database',
    sentence:
      'Its indexes are deeper in a larger table. Pages count whether they are cached or not, by `EXPLAIN (BUFFERS)`, by ' +
      '`Innodb_buffer_pool_read_requests` (with the undo log), and by what an empty cache of SQLite reads.',
    growth,
    versions: all.map(({ database, version }) => `${database} ${version}`),
    chart: {
      title: 'Pages that a first request touches',
      xAxis: 'rows in the table',
      yAxis: 'pages',
      steps: toSteps(steps),
      lines: all.map(({ database, pages }) => ({ label: database, values: pages.map(({ first }) => first) })),
    },
    table: {
      columns: ['rows', ...all.flatMap(({ database }) => [`${database}, first`, 'replay'])],
      rows: steps.map((rows, i) => [
        formatCount(rows),
        ...all.flatMap(({ pages }) =>
          [pages[i]?.first, pages[i]?.replay].map((count = Number.NaN) => countCell(count)),
        ),
      ]),
    },
  }
}
