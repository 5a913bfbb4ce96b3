import type { Store, StoreEvent } from 'once-per-key/core'
import { PostgresStore, PostgresStoreError } from 'once-per-key/postgres'
import { runner } from 'once-per-key/run'
import { Client } from 'pg'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { startFaultProxy } from '../../support/fault-proxy.js'
import { startReplica } from '../../support/postgres-replica.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const opened = await openStore({ wal_level: 'replica', wal_keep_size: '64MB' })
const { server, store, pool, query, url } = opened
beforeEach(() => query('TRUNCATE once_per_key.records'))

const RESOLUTION = { token: 'operator', attempt: 1, answer: null, retentionMs: 1_000 }

/** Every command that can write, on a key. */
const COMMANDS: Readonly<Record<string, (store: Store, key: string) => Promise<unknown>>> = {
  begin: async (store, key) => store.begin(key, claimOf('t1')),
  renew: async (store, key) => store.renew(key, { ...ownOf('t1'), leaseMs: 1_000 }),
  complete: async (store, key) => store.complete(key, { ...ownOf('t1'), answer: ANSWER }),
  release: async (store, key) => store.release(key, { ...ownOf('t1'), failedMs: 1_000 }),
  resolve: (store, key) => (store as PostgresStore).resolve(key, RESOLUTION),
}

async function eachFailsWith(tried: Store, code: string, message: RegExp, key = 'k'): Promise<void> {
  for (const [name, send] of Object.entries(COMMANDS)) {
    const error = await send(tried, key).then(
      () => null,
      (error: unknown) => error,
    )
    expect(error, name).toBeInstanceOf(PostgresStoreError)
    expect((error as PostgresStoreError).code, name).toBe(code)
    expect((error as PostgresStoreError).message, name).toMatch(message)
  }
}

describe('says what is wrong, and what to do, where', () => {
  test('the schema is not there', async () => {
    const other = openPool(await server.createDatabase('bare'))
    await eachFailsWith(storeOn({ pool: other }), 'schema_missing', /call `await store\.migrate\(\)`/)
    await other.end()
  })

  test('the schema is of another version', async () => {
    const other = openPool(await server.createDatabase('of_the_future'))
    await storeOn({ pool: other }).migrate()
    await other.query('ALTER TABLE once_per_key.records RENAME COLUMN revision TO another')
    await eachFailsWith(storeOn({ pool: other }), 'schema_missing', /or has another version/)
    await other.end()
  })

  test('the sessions are read-only', async () => {
    const other = openPool(await server.createDatabase('read_only'))
    await storeOn({ pool: other }).migrate()
    await storeOn({ pool: other }).complete('done', { ...ownOf('t1'), answer: ANSWER })
    await other.end()
    await server.run("ALTER DATABASE read_only SET default_transaction_read_only = 'on'")
    const readOnly = openPool(server.url('read_only'))
    await eachFailsWith(storeOn({ pool: readOnly }), 'read_only', /needs the primary/)
    // Not even a replay, which would write nothing.
    await eachFailsWith(storeOn({ pool: readOnly }), 'read_only', /needs the primary/, 'done')
    await readOnly.end()
  })

  test('the server is a replica', async () => {
    await store.complete('done', { ...ownOf('t1'), answer: ANSWER })
    const replica = await startReplica(server.port)
    const other = openPool(replica.url)
    try {
      await vi.waitFor(async () => expect((await other.query('SELECT FROM once_per_key.records')).rowCount).toBe(1), {
        timeout: 30_000,
        interval: 50,
      })
      await eachFailsWith(storeOn({ pool: other }), 'read_only', /needs the primary/, 'done')
    } finally {
      await other.end()
      await replica.close()
    }
  })

  test('a transaction holds the record', async () => {
    await store.begin('k', claimOf('t1'))
    const holder = await pool.connect()
    await holder.query('BEGIN')
    await holder.query('SELECT FROM once_per_key.records FOR UPDATE')
    try {
      const own = ownOf('t1')
      const outcomes = await Promise.allSettled([
        store.renew('k', { ...own, leaseMs: 1_000 }),
        store.complete('k', { ...own, answer: ANSWER }),
        store.release('k', { ...own, failedMs: 1_000 }),
      ])
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'record_locked' } })
      }
    } finally {
      await holder.query('ROLLBACK')
      holder.release()
    }
    expect(await store.complete('k', { ...ownOf('t1'), answer: ANSWER })).toEqual({ ok: true })
  })

  test('a transaction holds the record: a claim is refused as in flight, live as it looks', async () => {
    await store.begin('lapsed', { ...claimOf('t1'), leaseMs: 1 })
    await store.release('uncertain', { ...ownOf('t1'), uncertain: true, failedMs: 1_000 })
    await store.release('certain', { ...ownOf('t1'), failedMs: 60_000 })
    const holder = await pool.connect()
    await holder.query('BEGIN')
    await holder.query('SELECT FROM once_per_key.records FOR UPDATE')
    await holder.query(
      `INSERT INTO once_per_key.records (id, name, format, revision, state, token, fingerprint, attempt, uncertain, lease_until, expires_at)
       VALUES (sha256('new'), 'new', 1, 1, 'in-flight', 't1', 'f', 1, 0, 4102444800000, 4102444800000)`,
    )
    try {
      const inFlight = { state: 'in-flight', fingerprint: 'f', attempt: 1, uncertain: false, leaseRemainingMs: 1 }
      expect(await store.begin('lapsed', claimOf('t2'))).toEqual({ acquired: false, record: inFlight })
      expect(await store.begin('certain', claimOf('t2'))).toEqual({ acquired: false, record: inFlight })
      expect(await store.begin('new', claimOf('t2'))).toEqual({ acquired: false, record: inFlight })
      const uncertain = { ...inFlight, uncertain: true }
      expect(await store.begin('uncertain', claimOf('t2'))).toEqual({ acquired: false, record: uncertain })
      // Another fingerprint's record is that as long as it is bound.
      expect(await store.begin('lapsed', claimOf('t2', 'g'))).toMatchObject({ record: { fingerprint: 'f' } })
    } finally {
      await holder.query('ROLLBACK')
      holder.release()
    }
    expect(await store.begin('lapsed', claimOf('t2'))).toMatchObject({ acquired: true, attempt: 2 })
    expect(await store.begin('new', claimOf('t2'))).toMatchObject({ acquired: true, attempt: 1 })
  })

  test('statement_timeout is shorter than a command takes', async () => {
    const hasty = openPool(opened.url, { statement_timeout: 100 })
    await store.begin('k', claimOf('t1'))
    const holder = await pool.connect()
    await holder.query('BEGIN')
    await holder.query('SELECT FROM once_per_key.records FOR UPDATE')
    try {
      const completing = storeOn({ pool: hasty }).complete('k', { ...ownOf('t1'), answer: ANSWER })
      await expect(completing).rejects.toMatchObject({
        code: 'timed_out',
        message: expect.stringContaining('statement_timeout'),
      })
    } finally {
      await holder.query('ROLLBACK')
      holder.release()
      await hasty.end()
    }
    expect(await store.inspect('k')).toMatchObject({ state: 'in-flight' })
  })

  test('the database is full', async () => {
    await query(`CREATE FUNCTION once_per_key.full() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`)
    await query('CREATE TRIGGER full_up BEFORE INSERT ON once_per_key.records EXECUTE FUNCTION once_per_key.full()')
    try {
      await expect(store.begin('k', claimOf('t1'))).rejects.toMatchObject({ code: 'database_full' })
    } finally {
      await query('DROP TRIGGER full_up ON once_per_key.records')
    }
    expect(await store.begin('k', claimOf('t1'))).toMatchObject({ acquired: true, attempt: 1 })
  })
})

describe('where connections are short', () => {
  test('claims that wait for one are told of, once, and the claim is made in the end', async () => {
    const small = openPool(opened.url, { max: 1 })
    const tried = storeOn({ pool: small })
    const events: StoreEvent[] = []
    tried.observe((event) => void events.push(event))
    const handler = await small.connect()
    const claims = Promise.all(['a', 'b', 'c'].map((key) => tried.begin(key, claimOf('t1'))))
    await vi.waitFor(() => expect(events).toHaveLength(1))
    expect(events[0]).toMatchObject({
      type: 'connections_exhausted',
      waiting: 3,
      advice: expect.stringContaining('its own pool'),
    })
    handler.release()
    for (const begun of await claims) expect(begun).toMatchObject({ acquired: true })
    expect(events).toHaveLength(1)
    await small.end()
  })

  test('a claim that gets no connection in time is not sent; what has run waits for its turn', async () => {
    const small = openPool(opened.url, { max: 1 })
    const tried = storeOn({ pool: small })
    await tried.begin('k', claimOf('t1'))
    const handler = await small.connect()
    const completed = tried.complete('k', { ...ownOf('t1'), answer: ANSWER })
    const claims = Array.from({ length: 20 }, (_, i) => tried.begin(`late ${i}`, claimOf('t1')))
    const commands = [...claims, tried.release('never claimed', { ...ownOf('t2'), failedMs: 60_000 })]
    const told = { code: 'connections_exhausted', message: expect.stringContaining('nothing was sent') }
    await Promise.all(commands.map((command) => expect(command).rejects.toMatchObject(told)))
    const warned = vi.fn() // The connection passes by all who have given up.
    process.on('warning', warned)
    handler.release()
    expect(await completed).toEqual({ ok: true })
    await small.end()
    process.off('warning', warned)
    expect(warned).not.toHaveBeenCalled()
    expect(await query('SELECT name FROM once_per_key.records')).toEqual([{ name: 'k' }])
  })

  test('an engine that waits for less than two seconds for a reply has its claims given up sooner', async () => {
    const small = openPool(opened.url, { max: 1 })
    const tried = storeOn({ pool: small })
    for (const storeTimeoutMs of [400, 2_000]) runner({ store: tried, name: 'jobs', storeTimeoutMs })
    const handler = await small.connect()
    const told = { code: 'connections_exhausted', message: expect.stringContaining('within 300 ms') }
    await expect(tried.begin('late', claimOf('t1'))).rejects.toMatchObject(told)
    handler.release()
    await small.end()
  })

  test('a claim for which the pool opens one waits for it as long as the engine does', async () => {
    const proxy = await startFaultProxy(server.port)
    const slow = openPool(opened.url.replace(`${server.port}`, `${proxy.port}`), { max: 1 })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const held = proxy.hold('database')
    const claimed = storeOn({ pool: slow }).begin('k', claimOf('t1'))
    const queued = expect(storeOn({ pool: slow }).begin('late', claimOf('t2'))).rejects.toMatchObject({
      code: 'connections_exhausted',
    })
    const sendOn = await held
    await vi.advanceTimersByTimeAsync(5_000)
    await queued
    vi.useRealTimers()
    sendOn()
    expect(await claimed).toMatchObject({ acquired: true })
    await slow.end()
    await proxy.close()
  })

  test('where the pool gives up, the command fails', async () => {
    const small = openPool(opened.url, { max: 1, connectionTimeoutMillis: 500 })
    const handler = await small.connect()
    await eachFailsWith(storeOn({ pool: small }), 'connections_exhausted', /its own small pool/)
    handler.release()
    await small.end()
    expect(await query('SELECT FROM once_per_key.records')).toEqual([])
  })

  test('where the database accepts no more, too', async () => {
    await server.run('CREATE ROLE few LOGIN CONNECTION LIMIT 1; GRANT ALL ON SCHEMA once_per_key TO few')
    const url = opened.url.replace('postgres@', 'few@')
    const only = new Client({ connectionString: url })
    await only.connect()
    const other = openPool(url)
    await eachFailsWith(storeOn({ pool: other }), 'connections_exhausted', /too many connections/)
    await other.end()
    await only.end()
  })
})

describe('where connections are lost', () => {
  test('a session that the database ends in the middle of a command fails that command alone', async () => {
    const tried = openPool(opened.url, { application_name: 'victim' })
    await store.begin('k', claimOf('t1'))
    const holder = await pool.connect()
    await holder.query('BEGIN')
    await holder.query('SELECT FROM once_per_key.records FOR UPDATE')
    const completing = storeOn({ pool: tried }).complete('k', { ...ownOf('t1'), answer: ANSWER })
    const lost = expect(completing).rejects.toMatchObject({ code: 'connection_lost' })
    await vi.waitFor(async () => {
      const ended = await query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim' AND wait_event_type = 'Lock'",
      )
      expect(ended).toHaveLength(1)
    })
    await lost
    await holder.query('ROLLBACK')
    holder.release()
    expect(await storeOn({ pool: tried }).complete('k', { ...ownOf('t1'), answer: ANSWER })).toEqual({ ok: true })
    await tried.end()
  })

  test('a server that goes silent is given up after half a minute, and its connection with it', async () => {
    const proxy = await startFaultProxy(server.port)
    const tried = openPool(opened.url.replace(`${server.port}`, `${proxy.port}`), { max: 1 })
    await storeOn({ pool: tried }).begin('k', claimOf('t1'))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    proxy.freeze()
    const lost = expect(storeOn({ pool: tried }).begin('k', claimOf('t2'))).rejects.toMatchObject({
      code: 'connection_lost',
    })
    await vi.advanceTimersByTimeAsync(30_000)
    await lost
    vi.useRealTimers()
    expect(tried.totalCount).toBe(0)
    proxy.heal()
    expect(await storeOn({ pool: tried }).begin('k', claimOf('t2'))).toMatchObject({ acquired: false })
    await tried.end()
    await proxy.close()
  })

  test('a server that crashed and came back is used again, and has kept every record', async () => {
    await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
    await server.crash()
    await eachFailsWith(store, 'connection_lost', /refused or broke/)
    await server.restart()
    expect(await store.begin('k', claimOf('t2'))).toMatchObject({ acquired: false, record: { state: 'completed' } })
  })
})

describe('a record that cannot be read', () => {
  test('since it is of a later format is an error to every command, and is left as it is', async () => {
    await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
    await query("UPDATE once_per_key.records SET format = 2, state = 'paused'")
    const before = await query('SELECT * FROM once_per_key.records')
    await eachFailsWith(store, 'record_unreadable', /a later version of the library wrote it/)
    await expect(store.inspect('k')).rejects.toMatchObject({ code: 'record_unreadable' })
    expect(await query('SELECT * FROM once_per_key.records')).toEqual(before)
  })

  test('is none any more once its retention is over', async () => {
    await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
    await query("UPDATE once_per_key.records SET format = 2, state = 'paused', expires_at = 1")
    expect(await store.inspect('k')).toBeNull()
    expect(await store.begin('k', claimOf('t2'))).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
  })

  test.each(['nonsense', '{}', '["", 1]', '["", [["a"]]]', '["", [["a", 1]]]', '[1, []]', 'null'])(
    'since its head is %s fails a replay, and is not quoted',
    async (head) => {
      await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
      await query('UPDATE once_per_key.records SET head = $1', [head])
      const replaying = store.begin('k', claimOf('t2'))
      await expect(replaying).rejects.toThrow(
        /^The record cannot be read, and was left unchanged: its column head is damaged\.$/,
      )
    },
  )

  test.each([
    ["state = 'finished'"],
    ['fingerprint = NULL'],
    ['status = NULL'],
    ['head = NULL'],
    ['uncertain = 1'],
    ['lease_until = 1'],
    ['token = NULL'],
    ["state = 'failed'"],
    ["state = 'in-flight'"],
  ])('cannot be made: %s', async (change) => {
    await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
    await expect(query(`UPDATE once_per_key.records SET ${change}`)).rejects.toThrow(/records_format_1|not-null/)
  })
})

describe('refuses at construction', () => {
  test.each([
    ['nothing', undefined, /expected a Pool of `pg`/],
    ['no client', {}, /expected a Pool of `pg`/],
    ['a URL', { pool: 'postgres://localhost/db' }, /new Pool\(\{ connectionString \}\)/],
    ['a single client', { pool: new Client() }, /a single Client, which blocks itself/],
    ['both', { pool, query: async () => [] }, /either `pool` or `query`/],
    ['another name', { pool, shema: 'x' }, /shema: did you mean schema\?/],
    ['a schema that needs quotes', { pool, schema: 'a"b' }, /schema: expected a name of letters/],
    ["a schema of Postgres' own", { pool, schema: 'pg_once' }, /does not begin with pg_/],
    ['a schema that would be cut off', { pool, schema: 'a'.repeat(64) }, /at most 63/],
  ])('%s', (_name, options, message) => {
    expect(() => new PostgresStore(options as never)).toThrow(message)
  })

  test.each([
    ['no rows', async () => undefined],
    ['a number of rows', async () => ({ rows: 1 })],
    ['no row', async () => []],
    ['rows as lists', async () => ({ rows: [['inserted', '1']] })],
    ['columns by other names', async () => [{ INSERTED: '1' }]],
    ['numbers', async () => [{ inserted: null, now: 1, state: 'failed', attempt: 1 }]],
  ])('a `query` that answers with %s is no store', async (_name, answers) => {
    await expect(storeOn({ query: answers }).begin('k', claimOf('t1'))).rejects.toMatchObject({
      code: 'client_unsuitable',
    })
  })
})

test('bytes come as they are, however the sessions write them', async () => {
  const options = '-c bytea_output=escape -c default_transaction_isolation=serializable'
  const own = openPool(url, { options, max: 2 })
  const escaped = storeOn({ pool: own })
  const body = Uint8Array.from({ length: 256 }, (_, i) => i)
  await escaped.begin('acme:bytes', claimOf('t1'))
  await escaped.step('acme:bytes', {
    ...ownOf('t1'),
    label: 'one',
    order: 1,
    state: 'done',
    result: body,
    leaseMs: 30_000,
  })
  expect(await escaped.begin('acme:bytes', claimOf('t1'))).toMatchObject({ steps: [{ result: Buffer.from(body) }] })
  await escaped.complete('acme:bytes', { ...ownOf('t1'), answer: { ...ANSWER, body } })
  expect(await escaped.begin('acme:bytes', claimOf('t2'))).toMatchObject({
    record: { answer: { body: Buffer.from(body) } },
  })
  expect((await escaped.listScope('acme', null)).records).toMatchObject([{ key: 'acme:bytes' }])
  await own.end()
})

test('a `query` that answers with rows, or with a list that begins with them, will do', async () => {
  const text = async (sql: string, values: unknown[]) => (await pool.query(sql, values)).rows
  expect(await storeOn({ query: text }).begin('k', claimOf('t1'))).toMatchObject({ acquired: true })
  const sequelize = async (sql: string, values: unknown[]) => [await text(sql, values), { rowCount: 1 }]
  expect(await storeOn({ query: sequelize }).begin('k', claimOf('t1'))).toMatchObject({ acquired: true })
})
