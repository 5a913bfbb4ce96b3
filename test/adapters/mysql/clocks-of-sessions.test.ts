import { createPool, type PoolConnection } from 'mysql2/promise'
import type { IdempotencyContext } from 'once-per-key'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Handler } from '../../support/payout-servers.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { openPool, storeOn } from './open-store.js'
import { onDatabase } from './served.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** A booking that is dated back to 2001. */
const BACK = 'SET timestamp = 1000000000'
/** In 2037. */
const AHEAD = 'SET timestamp = 2145916800'
const FREE = 'SET timestamp = DEFAULT'

/** With the setting, `SYSDATE()` is moved by `SET timestamp` as `NOW()` is. */
const SERVERS = [
  ['a server as it is', {}],
  ['a server that runs with --sysdate-is-now', { sysdate_is_now: '1' }],
] as const

describe.each(SERVERS)('a session whose clock is set, on %s,', async (_name, settings) => {
  const on = await onDatabase('DO 0', settings)
  const { store, insert, effects, errors, query, url, application, pool } = on
  on.clears()

  const expiries = async () => (await query('SELECT expires_at FROM once_per_key_records')).map((row) => row.expires_at)
  const refused = { code: 'database_unsuitable', message: expect.stringContaining('SET timestamp') }

  describe.each(['assumed', 'in-transaction'] as const)('(effects: %s)', (kind) => {
    /** One payout for each request that runs. */
    const serve = (inside: (tx: PoolConnection) => Promise<unknown>, behind = async (_tx: PoolConnection) => {}) => {
      let runs = 0
      const handler: Handler = async (_req, res, context) => {
        await store.transaction(context, async (tx) => {
          runs++
          await inside(tx as PoolConnection)
          await insert(tx as PoolConnection, `e${runs}`)
          await behind(tx as PoolConnection)
          res.status(201).json({ runs, previousOutcome: context.previousOutcome })
        })
      }
      return on.serve(handler, { effects: kind })
    }

    test.each([BACK, AHEAD])('is refused at the end of a transaction: %s', async (sql) => {
      const post = await serve((tx) => tx.query(sql))
      expect(await post()).toMatchObject({ status: 500 })
      expect(errors).toMatchObject([refused])
      expect(await effects()).toEqual([])
    })

    test('poisons no transaction that comes after it on the same connection', async () => {
      const narrow = openPool(url, { connectionLimit: 1 })
      onTestFinished(() => narrow.end())
      const connection = await narrow.getConnection()
      await connection.query(BACK)
      connection.release()
      const onNarrow = storeOn({ pool, transactions: narrow })
      const post = await on.serve(
        async (_req, res, context) => {
          await onNarrow.transaction(context, async (tx) => {
            await insert(tx as unknown as PoolConnection)
            res.status(201).end()
          })
        },
        { effects: kind, store: onNarrow },
      )
      expect(await post()).toMatchObject({ status: 500 })
      expect(errors).toMatchObject([refused])
      expect(await effects()).toEqual([])
    })

    test('is no hindrance where the work has set it free again, and nobody runs twice', async () => {
      const post = await serve(
        (tx) => tx.query(BACK),
        async (tx) => void (await tx.query(FREE)),
      )
      const before = Date.now()
      expect(await post()).toMatchObject({ status: 201, replayed: false })
      expect(await post()).toMatchObject({ status: 201, replayed: true, body: { runs: 1 } })
      expect(await effects()).toEqual(['e1'])
      expect(Number((await expiries())[0])).toBeGreaterThan(before)
    })
  })

  test.each<[string, (context: IdempotencyContext) => Promise<unknown>]>([
    [
      'a step',
      (context) =>
        store.step(context, 'reserve', async (tx) => {
          await tx.query(BACK)
          await insert(tx as unknown as PoolConnection)
        }),
    ],
    [
      'completeIn',
      async (context) => {
        const tx = await application.getConnection()
        try {
          await tx.query('START TRANSACTION')
          await tx.query(BACK)
          await insert(tx)
          await store.completeIn(tx, context, { status: 201 })
          await tx.query('COMMIT')
        } finally {
          await tx.query('ROLLBACK')
          tx.destroy()
        }
      },
    ],
  ])('is refused by %s', async (_way, work) => {
    const post = await on.serve(async (_req, res, context) => {
      await work(context)
      res.status(201).end()
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([refused])
    expect(await effects()).toEqual([])
  })

  test('a lock that was waited for is no clock that was set', async () => {
    const patient = { storeTimeoutMs: 6_000, leaseMs: 24_000, maxRunMs: 30_000 }
    const post = await on.serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx as unknown as PoolConnection)
        const held = await pool.getConnection()
        await held.query('START TRANSACTION')
        await held.query("SELECT * FROM once_per_key_records WHERE name = 'single-tenant:k' FOR UPDATE")
        setTimeout(() => void held.query('ROLLBACK').then(() => held.release()), 2_500)
        res.status(201).end()
      })
    }, patient)
    expect(await post()).toMatchObject({ status: 201 })
    expect(errors).toEqual([])
  })

  describe('in the pool of the store', () => {
    /** A store on a pool of one connection, whose clock is set once it has been used. */
    async function poisoned(sql: string) {
      const shared = createPool({ uri: url, connectionLimit: 1 })
      onTestFinished(() => shared.end())
      const onShared = storeOn({ pool: shared })
      await onShared.inspect('first')
      const connection = await shared.getConnection()
      await connection.query(sql)
      connection.release()
      return onShared
    }

    const commands: [string, (store: ReturnType<typeof storeOn>) => Promise<unknown>][] = [
      ['a claim', (store) => store.begin('new', claimOf('t'))],
      ['a claim of a key that is there', (store) => store.begin('live', claimOf('other'))],
      ['a renewal', (store) => store.renew('live', { ...ownOf('owner'), leaseMs: 30_000 })],
      ['a completion', (store) => store.complete('live', { ...ownOf('owner'), answer: ANSWER })],
      ['a release', (store) => store.release('live', { ...ownOf('owner'), failedMs: 60_000 })],
      ['a look', (store) => store.inspect('live')],
      ['a sweep', (store) => store.sweep()],
      ['a list', (store) => store.list(null)],
    ]
    const table = [BACK, AHEAD].flatMap((sql) => commands.map((each) => [sql, ...each] as const))

    test.each(table)('ends no record early (%s, %s)', async (sql, _what, command) => {
      await store.begin('live', claimOf('owner'))
      const onShared = await poisoned(sql)
      await command(onShared).catch((error) => expect(error).toMatchObject(refused))
      const [least, most] = [Date.now() + 10_000, Date.now() + 200 * 86_400_000]
      const found = await query('SELECT state, lease_until, expires_at FROM once_per_key_records')
      expect(found.length).toBeGreaterThan(0)
      for (const { state, lease_until, expires_at } of found) {
        const until = Number(state === 'in-flight' ? lease_until : expires_at)
        expect(until).toBeGreaterThan(least)
        expect(until).toBeLessThan(most)
      }
      // Whatever it was told, the next command finds the clock of the server.
      expect(await onShared.begin('next', claimOf('t'))).toMatchObject({ acquired: true })
    })

    test('is refused from the first command on, where each session begins so', async () => {
      const set = openPool(url)
      set.on('connection', (connection) => void connection.query(BACK))
      onTestFinished(() => set.end())
      const begun = await storeOn({ pool: set })
        .begin('k', claimOf('t'))
        .catch((error) => error)
      if (settings === SERVERS[0][1]) expect(begun).toMatchObject(refused)
      else expect(begun).toMatchObject({ acquired: true })
      for (const at of await expiries()) expect(Number(at)).toBeGreaterThan(Date.now())
    })
  })
})
