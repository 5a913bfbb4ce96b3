import { inspect } from 'node:util'
import { PostgresStore } from 'once-per-key/postgres'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { retrying } from '../../../examples/recipes/transactions/retrying.js'
import { openStore } from '../../../test/adapters/postgres/open-store.js'
import { startFaultProxy } from '../../../test/support/fault-proxy.js'
import { IN_STATEMENT } from '../../../test/support/postgres-statements.js'
import { mistakesInRecipes } from '../support/prisma-project.js'
import type { AnyClient } from './client-on-trial.js'
import { CLIENTS } from './clients.js'
import { serve } from './handler-on-trial.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 300_000 })

const { server: database, url, pool, store: observer, query } = await openStore()
await query('CREATE TABLE effects (id text PRIMARY KEY)')
await query('CREATE TABLE balance AS SELECT 0 AS n')
// Fails at COMMIT, the first time alone: a sequence is not rolled back.
await query(`
  CREATE SEQUENCE commits;
  CREATE TABLE conflicts (id text);
  CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('commits') = 1 THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON conflicts DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION fail_once();`)
/** All that the clients send goes through it. */
const proxy = await startFaultProxy(database.port)
afterAll(() => proxy.close())

beforeEach(async () => {
  await query('TRUNCATE once_per_key.records, effects, conflicts')
  await query("SELECT setval('commits', 1, false)")
})

const insert = (id: string) => `INSERT INTO effects VALUES ('${id}')`
const effects = async () => (await query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id)
const record = () => observer.inspect('single-tenant:k')
const FAST = { leaseMs: 4_000, maxRunMs: 6_000, storeTimeoutMs: 1_000 }

describe.each(CLIENTS)('with %s', (_name, open) => {
  let client: AnyClient
  let store: AnyClient['store']

  beforeAll(async () => {
    // Where they lose a connection they say so.
    for (const level of ['log', 'warn', 'error'] as const) vi.spyOn(console, level).mockImplementation(() => {})
    vi.stubEnv('DATABASE_URL', url.replace(`:${database.port}`, `:${proxy.port}`))
    client = await open()
    store = client.store
  })
  afterAll(() => {
    vi.restoreAllMocks()
    return client?.close()
  })

  test('effects and record are committed together, and a retry replays the answer', async () => {
    const seen: unknown[] = []
    const { post, errors } = await serve(store, async (res, context) => {
      const value = await store.transaction(context, async (tx) => {
        await client.query(tx, insert('e1'))
        res.status(201).json({ id: 'e1' })
        seen.push((await record())?.state, await effects())
        return 7
      })
      seen.push(value, await effects())
    })
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: null })
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: 'true' })
    expect(seen).toEqual(['in-flight', [], 7, ['e1']])
    expect(errors).toEqual([])
  })

  test('a throw leaves nothing but the error page, and a retry may run', async () => {
    const outcomes: string[] = []
    const { post, errors } = await serve(store, async (res, context) => {
      outcomes.push(context.previousOutcome)
      await store.transaction(context, async (tx) => {
        await client.query(tx, insert('e1'))
        res.setHeader('X-Extra', 'dropped').status(201).json({ id: 'e1' })
        if (context.attempt === 1) throw new Error('no')
      })
    })
    expect(await post()).toEqual({ status: 500, body: { failed: true }, replayed: null, extra: null })
    expect([await effects(), errors]).toMatchObject([[], [{ message: 'no' }]])
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: null })
    expect(await effects()).toEqual(['e1'])
    expect(outcomes).toEqual(['none', 'unknown'])
  })

  test('another transaction may follow one that was rolled back', async () => {
    const { post } = await serve(store, async (res, context) => {
      const first = store.transaction(context, async (tx) => {
        await client.query(tx, insert('e1'))
        res.setHeader('X-Extra', 'dropped').status(200).json({ from: 1 })
        await client.query(tx, insert('e1'))
      })
      expect(client.sqlStateOf(await first.catch((error: unknown) => error))).toBe('23505')
      await store.transaction(context, async (tx) => {
        await client.query(tx, insert('e2'))
        res.status(201).json({ from: 2 })
      })
    })
    expect(await post()).toEqual({ status: 201, body: { from: 2 }, replayed: null, extra: null })
    expect(await effects()).toEqual(['e2'])
  })

  test('a failure that is answered rolls back', async () => {
    const { post, errors } = await serve(store, (res, context) =>
      store.transaction(context, async (tx) => {
        await client.query(tx, insert('e1'))
        res.status(422).json({ declined: true })
      }),
    )
    expect(await post()).toMatchObject({ status: 422, body: { declined: true } })
    expect([await effects(), errors]).toEqual([[], []])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: false })
  })

  test('an owner whose record was taken over commits nothing', async () => {
    const claim = {
      token: 'other',
      scope: 'x',
      leaseMs: 30_000,
      retentionMs: 86_400_000,
      unknownOutcome: 'rerun',
    } as const
    let taken: unknown
    const { post, errors } = await serve(store, (res, context) =>
      store.transaction(context, async (tx) => {
        await client.query(tx, insert('e1'))
        res.status(201).json({ id: 'e1' })
        const [{ fingerprint }] = (await query(
          'UPDATE once_per_key.records SET lease_until = 1 RETURNING fingerprint',
        )) as [{ fingerprint: string }]
        taken = await observer.begin('single-tenant:k', { ...claim, fingerprint })
      }),
    )
    expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' } })
    expect(taken).toEqual({ acquired: true, attempt: 2, previousOutcome: 'unknown' })
    expect(errors).toMatchObject([{ name: 'PostgresStoreError', code: 'record_taken' }])
    expect([await effects(), await record()]).toMatchObject([[], { state: 'in-flight', attempt: 2 }])
  })

  test.each([
    ['that waits in vain for its record', 'SELECT FROM once_per_key.records FOR UPDATE'],
    ['whose record is not its own any more', "UPDATE once_per_key.records SET token = 'other'"],
  ])('a completion %s names no key and no answer in its error', async (_title, meanwhile) => {
    const other = await pool.connect()
    const { post, errors } = await serve(store, async (res, context) => {
      const done = store.transaction(context, async (tx) => {
        await client.query(tx, insert('e1'))
        res.status(201).json({ secret: 'do not tell' })
        await other.query('BEGIN')
        await other.query(meanwhile)
        if (meanwhile.startsWith('UPDATE')) await other.query('COMMIT')
      })
      return done.finally(async () => {
        await other.query('ROLLBACK')
        other.release()
      })
    })
    await post()
    expect(errors).toHaveLength(1)
    const [error] = errors as [Error]
    expect(['55P03', 'record_taken']).toContain(client.sqlStateOf(error) ?? (error as { code?: unknown }).code)
    const said = `${error.message} ${error.stack} ${inspect(error, { depth: 20 })}`
    expect(said).not.toContain('single-tenant:k')
    expect(said).not.toMatch(/do not tell|646f206e6f742074656c6c|64 6f 20 6e 6f 74/)
  })

  test('a transaction whose writes go elsewhere is rolled back, unless that is allowed', async () => {
    const { post, errors } = await serve(store, (res, context) =>
      store.transaction(
        context,
        async (tx) => {
          await client.query(tx, 'SELECT count(*) FROM effects')
          if (context.attempt === 1) await query(insert('elsewhere'))
          res.status(201).json({ id: 'none' })
        },
        context.attempt === 1 ? undefined : { allowEmpty: true },
      ),
    )
    expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
    expect(errors).toMatchObject([{ code: 'nothing_written', message: expect.stringContaining('allowEmpty: true') }])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
    expect(await post()).toMatchObject({ status: 201, body: { id: 'none' } })
    expect(await effects()).toEqual(['elsewhere'])
  })

  test('a savepoint is undone alone', async () => {
    const { post, errors } = await serve(store, (res, context) =>
      store.transaction(context, async (tx) => {
        await client.query(tx, insert('e1'))
        const undone = client.savepoint(tx, async (inner) => {
          await client.query(inner, insert('e2'))
          await client.query(inner, insert('e1'))
        })
        expect(client.sqlStateOf(await undone.catch((error: unknown) => error))).toBe('23505')
        await client.savepoint(tx, async (inner) => void (await client.query(inner, insert('e3'))))
        res.status(201).json({ id: 'e1' })
      }),
    )
    expect(await post()).toMatchObject({ status: 201 })
    expect([await effects(), errors]).toEqual([['e1', 'e3'], []])
    expect(await record()).toMatchObject({ state: 'completed' })
  })

  test('an SQL error that is caught without a savepoint rolls back', async () => {
    const { post, errors } = await serve(store, (res, context) =>
      store.transaction(context, async (tx) => {
        await client.query(tx, insert('e1'))
        await Promise.resolve(client.query(tx, insert('e1'))).catch(() => {})
        res.status(201).json({ id: 'e1' })
      }),
    )
    expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
    expect(errors).toHaveLength(1)
    expect(await effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test.each(['repeatable read', 'serializable'] as const)('a transaction is %s where it is told so', async (level) => {
    let seen: unknown
    const { post } = await serve(store, (res, context) =>
      store.transaction(
        context,
        async (tx) => {
          seen = await client.query(tx, 'SHOW transaction_isolation')
          await client.query(tx, insert('e1'))
          res.status(201).json({ id: 'e1' })
        },
        client.isolation[level],
      ),
    )
    expect(await post()).toMatchObject({ status: 201 })
    expect(JSON.stringify(seen)).toContain(level)
    expect(await effects()).toEqual(['e1'])
  })

  test.each([
    [
      'at a statement',
      async (tx: unknown, call: number) => {
        if (call === 1) await query('UPDATE balance SET n = n + 1')
        await client.query(tx, 'UPDATE balance SET n = n + 1')
      },
    ],
    ['at COMMIT', async (tx: unknown) => void (await client.query(tx, "INSERT INTO conflicts VALUES ('x')"))],
  ])('a serialization failure %s has the work called again, with a fresh response', async (_when, conflict) => {
    const stubborn = new PostgresStore({
      pool,
      sweeps: false,
      transactions: retrying(client.transactions, client.sqlStateOf),
    })
    const seen: unknown[] = []
    const { post, errors, events } = await serve(stubborn, (res, context) =>
      stubborn.transaction(
        context,
        async (tx) => {
          seen.push([res.headersSent, res.writableEnded, res.statusCode, res.getHeader('X-Extra')])
          await client.query(tx, insert('e1'))
          res.setHeader('X-Extra', `${seen.length}`)
          res.status(201).json({ call: seen.length })
          await conflict(tx, seen.length)
        },
        client.isolation['repeatable read'],
      ),
    )
    expect(await post()).toEqual({ status: 201, body: { call: 2 }, extra: '2', replayed: null })
    const fresh = [false, false, 200, undefined]
    expect([seen, errors]).toEqual([[fresh, fresh], []])
    expect(await effects()).toEqual(['e1'])
    expect(await post()).toEqual({ status: 201, body: { call: 2 }, extra: '2', replayed: 'true' })
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'replayed'])
  })

  // An error that nobody listens to would end the process: vitest tells of it.
  test('a session that the database ends in between ends its transaction alone', async ({ skip }) => {
    skip(client.endsTheProcess, 'it ends the process')
    const { post, errors } = await serve(store, (res, context) =>
      store.transaction(context, async (tx) => {
        await client.query(tx, insert('e1'))
        const sessions = await query(
          "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'",
        )
        expect(sessions).toHaveLength(1)
        await vi.waitUntil(
          async () => (await query('SELECT FROM pg_stat_activity WHERE pid = $1', [sessions[0]?.pid])).length === 0,
        )
        await client.query(tx, insert('e2'))
        res.status(201).json({})
      }),
    )
    expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
    expect([await effects(), errors]).toMatchObject([[], [expect.any(Error)]])
  })

  test('a step commits at once', async () => {
    const seen: unknown[] = []
    const { post } = await serve(store, async (res, context) => {
      await store.step(context, 'reserve', async (tx) => void (await client.query(tx, insert('e1'))))
      seen.push(await effects(), await record())
      await store.transaction(context, async (tx) => {
        await client.query(tx, insert('e2'))
        res.status(201).json({})
      })
    })
    expect(await post()).toMatchObject({ status: 201 })
    expect(seen).toMatchObject([['e1'], { state: 'in-flight', uncertain: true }])
    expect(await effects()).toEqual(['e1', 'e2'])
  })

  test.each([
    [{ status: 201, body: { id: 'e1' } }, false, ['e1']],
    [{ status: 503, body: { code: 'store_unavailable' } }, true, []],
  ])('a completion by hand is answered with %j', async (answer, undone, left) => {
    const { post } = await serve(store, async (res, context) => {
      const opened = client.transactions.transaction(async (tx) => {
        await client.query(tx, insert('e1'))
        await store.completeIn(tx, context, { status: 201, body: { id: 'e1' } })
        if (undone) throw new Error('no')
      })
      await opened.catch(() => {})
      res.status(200).json({ other: true })
    })
    expect(await post()).toMatchObject(answer)
    expect(await effects()).toEqual(left)
  })

  test.each([
    ['whose reply is lost is found out', 'dropReplyTo', { status: 201, body: { id: 'e1' } }, ['e1']],
    ['that is lost is found out', 'dropRequest', { status: 500, body: { failed: true } }, []],
  ] as const)('a COMMIT %s', async (_title, lose, answer, left) => {
    const { transaction, run } = client.transactions
    const cutOff = new PostgresStore({
      pool, // Its commands reach the database.
      sweeps: false,
      transactions: {
        transaction,
        async run(tx, statement) {
          const result = await run(tx, statement)
          if (statement.text.includes(IN_STATEMENT.completion)) void proxy[lose](WHATEVER_COMES)
          return result
        },
      },
    })
    const { post, events } = await serve(
      cutOff,
      (res, context) =>
        cutOff.transaction(context, async (tx) => {
          await client.query(tx, insert('e1'))
          res.status(201).json({ id: 'e1' })
        }),
      FAST,
    )
    expect(await post()).toMatchObject(answer)
    expect(await effects()).toEqual(left)
    expect(events.map(({ type }) => type)).toContain('completion_pending')
    expect((await post()).replayed).toBe(left.length > 0 ? 'true' : null)
  })
})

test('the lines for Prisma compile with the clients that it generates', async () => {
  expect(await mistakesInRecipes()).toBe('')
}, 300_000)

/** Each request contains it. A client that prepares COMMIT sends that word once. */
const WHATEVER_COMES = ''
