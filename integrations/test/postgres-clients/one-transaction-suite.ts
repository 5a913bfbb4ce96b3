import { inspect } from 'node:util'
import type { IdempotencyContext, IdempotencyOptions } from 'once-per-key'
import { PostgresStore } from 'once-per-key/postgres'
import { runner } from 'once-per-key/run'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openStore } from '../../../test/adapters/postgres/open-store.js'
import { startFaultProxy } from '../../../test/support/fault-proxy.js'
import { gate } from '../../../test/support/gate.js'
import { startPgBouncer } from '../../../test/support/pgbouncer.js'
import { IN_STATEMENT } from '../../../test/support/postgres-statements.js'
import type { AnyClient } from './client-on-trial.js'
import { CLIENTS } from './clients.js'
import { type Served, serve } from './handler-on-trial.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 300_000 })

const LEVELS = ['read committed', 'repeatable read', 'serializable'] as const
const DUPLICATES = 8
const MANY = 40
const SENT = { status: 201, body: { id: 'e1' } }
/** Of a run whose process is gone: nobody waits long for it. */
const SHORT = { leaseMs: 1_000, maxRunMs: 1_000, storeTimeoutMs: 250 }

type Response = Parameters<Parameters<typeof serve>[1]>[0]
type Handler = (res: Response, context: IdempotencyContext) => Promise<unknown>

/** One transaction and no claim, with each client, whose connections come to Postgres this way. */
export async function oneTransaction(way: 'directly' | 'through PgBouncer'): Promise<void> {
  const { server: database, url, store: observer, query } = await openStore()
  await query('CREATE TABLE effects (id text)')
  const pooler = way === 'directly' ? undefined : await startPgBouncer(database.port, 20)
  /** All that the clients send goes through it. */
  const proxy = await startFaultProxy(pooler?.port ?? database.port)
  afterAll(async () => {
    await proxy.close()
    await pooler?.close()
  })
  beforeEach(async () => {
    proxy.disarm()
    await query('TRUNCATE once_per_key.records, effects')
  })

  const effects = async () => (await query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id)
  const record = () => observer.inspect('single-tenant:k')

  describe.each(CLIENTS)(`one transaction and no claim, ${way}, with %s`, (_name, open) => {
    let client: AnyClient

    beforeAll(async () => {
      // Where they lose a connection they say so.
      for (const level of ['log', 'warn', 'error'] as const) vi.spyOn(console, level).mockImplementation(() => {})
      vi.stubEnv('DATABASE_URL', url.replace(`:${database.port}`, `:${proxy.port}`))
      client = await open()
    })
    afterAll(() => {
      vi.restoreAllMocks()
      return client?.close()
    })

    describe.each(LEVELS)('at %s', (level) => {
      const insert = (tx: unknown, id = 'e1') => client.query(tx, `INSERT INTO effects VALUES ('${id}')`)
      const transaction = (
        context: IdempotencyContext,
        work: (tx: unknown) => unknown,
        { store = client.store, allowEmpty = false } = {},
      ): Promise<unknown> => {
        const isolation = level === 'read committed' ? undefined : client.isolation[level]
        // Of a client whose options are no object, one at a time.
        const options = typeof isolation === 'object' ? { ...isolation, allowEmpty } : { allowEmpty }
        return store.transaction(context, async (tx) => work(tx), allowEmpty ? options : isolation)
      }
      const paying =
        (inside: (tx: unknown, context: IdempotencyContext) => unknown = () => {}): Handler =>
        (res, context) =>
          transaction(context, async (tx) => {
            await insert(tx)
            await inside(tx, context)
            res.status(201).json({ id: 'e1' })
          })
      const served = (handler: Handler, options: Partial<IdempotencyOptions> = {}): Promise<Served> =>
        serve(client.store, handler, { effects: 'in-transaction', ...options })

      test('the effects and a completed record are committed, of which nothing is there before, and a retry replays', async () => {
        const seen: unknown[] = []
        const { post, errors, events } = await served(
          paying(async (tx) => {
            seen.push(
              await record(),
              await effects(),
              JSON.stringify(await client.query(tx, 'SHOW transaction_isolation')),
            )
          }),
        )
        expect(await post()).toMatchObject({ ...SENT, replayed: null })
        expect(await post()).toMatchObject({ ...SENT, replayed: 'true' })
        expect(seen).toEqual([null, [], expect.stringContaining(level)])
        expect([errors, await effects()]).toEqual([[], ['e1']])
        expect(await record()).toMatchObject({ state: 'completed', attempt: 1 })
        expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'replayed'])
      })

      test('a duplicate in its transaction is refused, and told to come back', async () => {
        const [entered, goOn] = [gate(), gate()]
        const { post, errors } = await served(
          paying(async () => {
            entered.open()
            await goOn.opened
          }),
        )
        const first = post()
        await entered.opened
        expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' } })
        goOn.open()
        expect(await first).toMatchObject(SENT)
        expect(errors).toMatchObject([{ code: 'operation_taken' }])
        expect(await post()).toMatchObject({ ...SENT, replayed: 'true' })
        expect(await effects()).toEqual(['e1'])
      })

      test('of duplicates that race, one has its effect, and nobody is told a failure', async () => {
        // None enters before each has looked.
        let looked = 0
        const all = gate()
        const { post } = await served((res, context) => {
          if (++looked === DUPLICATES) all.open()
          return all.opened.then(() => paying()(res, context))
        })
        const told = await Promise.all(Array.from({ length: DUPLICATES }, post))
        for (const { status, body } of told) {
          if (status !== 201) expect([status, body]).toMatchObject([409, { code: 'in_flight' }])
        }
        expect(await post()).toMatchObject(SENT)
        expect(await effects()).toEqual(['e1'])
      })

      test('of many transactions at once, each success has its effect', async () => {
        const once = runner({ store: client.store, name: 'many', effects: 'in-transaction', onEvent: () => {} })
        const pay = (key: string) =>
          once({ scope: 'x', key, input: {} }, async (context) => {
            await transaction(context, async (tx) => {
              await insert(tx, key)
              return key
            })
            return key
          })
        const told = await Promise.allSettled(Array.from({ length: MANY }, (_, i) => pay(`e${i}`)))
        const paid = told.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
        expect(await effects()).toEqual(paid.sort())
        // At SERIALIZABLE the database may undo some.
        expect(paid.length).toBeGreaterThan(level === 'serializable' ? 0 : MANY - 1)
      })

      test('a failure that is sent leaves nothing, and the next attempt is the first', async () => {
        const told: unknown[] = []
        const { post, errors } = await served(async (res, context) => {
          told.push([context.attempt, context.previousOutcome])
          await transaction(context, async (tx) => {
            await insert(tx)
            res.status(told.length === 1 ? 422 : 201).json({ id: 'e1' })
          })
        })
        expect(await post()).toMatchObject({ status: 422 })
        expect([await effects(), await record()]).toEqual([[], null])
        expect(await post()).toMatchObject({ ...SENT, replayed: null })
        expect([await effects(), told, errors]).toEqual([
          ['e1'],
          [
            [1, 'none'],
            [1, 'none'],
          ],
          [],
        ])
      })

      test('what throws is rolled back, and another transaction of the run may follow', async () => {
        const { post, errors, events } = await served(async (res, context) => {
          const first = transaction(context, async (tx) => {
            await insert(tx, 'undone')
            res.setHeader('X-Extra', 'dropped').status(200).json({ from: 1 })
            throw new Error('no')
          })
          expect(await first.catch((error: Error) => error.message)).toBe('no')
          await paying()(res, context)
        })
        expect(await post()).toMatchObject({ ...SENT, extra: null })
        expect([await effects(), errors]).toEqual([['e1'], []])
        expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed'])
      })

      test('an attempt that dies between its work and the COMMIT leaves nothing, and the next one runs at once', async () => {
        const [written, goOn] = [gate(), gate()]
        const dying = await served(
          paying(async () => {
            written.open()
            await goOn.opened
          }),
          SHORT,
        )
        // As of a killed process, all of its connections end, and it is silent from then on.
        void dying.post().catch(() => {})
        await written.opened
        // Behind the test it may go on, so that its client gives the connection up.
        if (!client.endsTheProcess) onTestFinished(() => goOn.open())
        proxy.reset()
        await untilEnded()
        const seen: unknown[] = []
        const { post } = await served((res, context) => {
          seen.push([context.attempt, context.previousOutcome])
          return paying()(res, context)
        })
        expect(await post()).toMatchObject({ ...SENT, replayed: null })
        expect([await effects(), seen]).toEqual([['e1'], [[1, 'none']]])
      })

      test('a handler that commits and begins again is caught', async () => {
        const { post, errors } = await served((res, context) =>
          transaction(context, async (tx) => {
            await client.query(tx, 'COMMIT')
            await client.query(tx, 'START TRANSACTION') // postgres.js refuses a BEGIN by itself
            await insert(tx)
            res.status(201).json({ id: 'e1' })
          }),
        )
        expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
        expect(errors).toMatchObject([{ code: 'transaction_unmarked' }])
        expect(await effects()).toEqual([])
        expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
      })

      test('a work that commits by a call of the client leaves the outcome unknown', async ({ skip }) => {
        const { commit } = client
        if (commit === undefined) return skip()
        const told: unknown[] = []
        const { post } = await served((res, context) => {
          told.push(context.previousOutcome)
          return paying((tx) => told.length === 1 && commit(tx))(res, context)
        })
        expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
        expect(await effects()).toEqual(['e1'])
        expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
        await post()
        expect(told).toEqual(['none', 'unknown'])
      })

      test('a transaction in which nothing was written is rolled back, unless that is allowed', async () => {
        let allowEmpty = false
        const { post, errors } = await served((res, context) =>
          transaction(
            context,
            async (tx) => {
              await client.query(tx, 'SELECT count(*) FROM effects')
              res.status(201).json({ id: 'none' })
            },
            { allowEmpty },
          ),
        )
        expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
        expect(errors).toMatchObject([{ code: 'nothing_written' }])
        expect(await record()).toBeNull()
        allowEmpty = true
        expect(await post()).toMatchObject({ status: 201, body: { id: 'none' }, replayed: null })
        expect(await post()).toMatchObject({ status: 201, body: { id: 'none' }, replayed: 'true' })
      })

      test.each([
        ['whose reply is lost is found by its token', 'dropReplyTo', SENT, ['e1']],
        ['that is lost is found out: nothing is left', 'dropRequest', { status: 500, body: { failed: true } }, []],
      ] as const)('a COMMIT %s', async (_title, lose, answer, left) => {
        const { run, transaction: opens } = client.transactions
        let isArmed = true
        const cutOff = new PostgresStore({
          query: (text, values) => query(text, values as unknown[]), // Its commands reach the database.
          sweeps: false,
          transactions: {
            transaction: opens,
            async run(tx, statement) {
              const result = await run(tx, statement)
              if (isArmed && statement.text.includes(IN_STATEMENT.finish)) void proxy[lose](WHATEVER_COMES)
              return result
            },
          },
        })
        const { post, events, errors } = await serve(
          cutOff,
          (res, context) =>
            transaction(
              context,
              async (tx) => {
                await insert(tx)
                res.status(201).json({ id: 'e1' })
              },
              { store: cutOff },
            ),
          { effects: 'in-transaction' },
        )
        expect(await post(), inspect(errors)).toMatchObject({ ...answer, replayed: null })
        expect(await effects()).toEqual(left)
        expect(events.map(({ type }) => type)).toContain('completion_pending')
        isArmed = false
        proxy.disarm()
        expect((await post()).replayed).toBe(left.length > 0 ? 'true' : null)
        expect(await effects()).toEqual(['e1'])
      })
    })
  })

  /** No session is left in a transaction. */
  async function untilEnded(): Promise<void> {
    const open = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`
    await vi.waitUntil(async () => (await query(open)).length === 0, { timeout: 20_000 })
  }
}

/** Each request contains it. A client that prepares COMMIT sends that word once. */
const WHATEVER_COMES = ''
