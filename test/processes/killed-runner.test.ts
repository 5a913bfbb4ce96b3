import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { openStore } from '../adapters/postgres/open-store.js'
import { buildProgram } from '../support/built-program.js'
import { startRedis } from '../support/redis-server.js'
import { type Line, type Point, type Settings, work } from './workers.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const FIRST: Line = { told: [1, 'none'] }
const SECOND: Line = { told: [2, 'unknown'] }
const PAID: Line = { result: 'paid' }
const REFUSED: Line = { refused: 'outcome_unknown', isWorthARetry: false }

const [program, redis, { url, query }] = await Promise.all([
  buildProgram('test/processes/worker.main.ts', ['ioredis', 'pg']),
  startRedis(),
  openStore(),
])
const client = new Redis(redis.port)
await query('CREATE TABLE books (key text, side text, PRIMARY KEY (key, side))')
afterAll(async () => {
  client.disconnect()
  await redis.close()
  await program.remove()
})

interface Ground {
  readonly name: string
  readonly where: Pick<Settings, 'redisPort' | 'databaseUrl'>
  /** The writes that are seen, once each. */
  effectOf(key: string): Promise<string[]>
  /** What a kill leaves of the effect, and what the next attempts see then. */
  readonly points: readonly { readonly at: Point; readonly left: string[]; readonly isCompleted?: true }[]
}

const GROUNDS: readonly Ground[] = [
  {
    name: 'Redis',
    where: { redisPort: redis.port },
    async effectOf(key) {
      const counts = [await client.scard(`${key}:debits`), await client.scard(`${key}:credits`)]
      return [...Array(counts[0]).fill('debit'), ...Array(counts[1]).fill('credit')]
    },
    points: [
      { at: 'before', left: [] },
      { at: 'inside', left: ['debit'] },
      { at: 'after', left: ['debit', 'credit'] },
    ],
  },
  {
    name: 'Postgres, in a transaction',
    where: { databaseUrl: url },
    effectOf: async (key) =>
      (await query('SELECT side FROM books WHERE key = $1 ORDER BY side DESC', [key])).map(({ side }) => String(side)),
    points: [
      { at: 'before', left: [] },
      { at: 'inside', left: [] },
      { at: 'after', left: ['debit', 'credit'], isCompleted: true },
    ],
  },
]

describe.each(GROUNDS)('a worker on $name that is killed (-9)', ({ where, effectOf, points }) => {
  test.concurrent.each(points)(
    '$at its effect: the next attempt is told so, and the effect is there once',
    async ({ at, left, isCompleted }) => {
      const worker: Settings = { ...where, key: randomUUID(), unknownOutcome: 'rerun' }
      expect(await work(program.file, { ...worker, stopsAt: at })).toEqual([FIRST, { at }])
      expect(await effectOf(worker.key)).toEqual(left)
      expect(await work(program.file, worker)).toEqual(isCompleted ? [PAID] : [SECOND, PAID])
      expect(await effectOf(worker.key)).toEqual(['debit', 'credit'])
      expect(await work(program.file, worker)).toEqual([PAID])
    },
  )

  test.concurrent.each(points)(
    "$at its effect: with unknownOutcome 'refuse' it never runs again, unless its outcome is known",
    async ({ at, left, isCompleted }) => {
      const worker: Settings = { ...where, key: randomUUID(), unknownOutcome: 'refuse' }
      await work(program.file, { ...worker, stopsAt: at })
      expect(await work(program.file, worker)).toEqual([isCompleted ? PAID : REFUSED])
      expect(await effectOf(worker.key)).toEqual(left)
    },
  )
})
