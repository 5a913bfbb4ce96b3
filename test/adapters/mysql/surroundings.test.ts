import { createConnection } from 'node:net'
import { createPool as createCallbackPool } from 'mysql2'
import type { Pool, PoolConnection } from 'mysql2/promise'
import type { StoreEvent } from 'once-per-key/core'
import { MySqlStore } from 'once-per-key/mysql'
import { runner } from 'once-per-key/run'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { findVersionFault } from '../../../adapters/mysql/examination.js'
import { startFaultProxy } from '../../support/fault-proxy.js'
import { IS_MYSQL, startMariaDb } from '../../support/mariadb-server.js'
import { payoutServers } from '../../support/payout-servers.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { ISOLATION, openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000 })

const { server, url, store, pool, query } = await openStore({})

/** A store whose sessions all begin with a statement, on a pool of its own. */
function storeWith(sql: string, uri = url): MySqlStore {
  const pool = createCallbackPool({ uri, connectionLimit: 4 })
  pool.on('connection', (connection) => connection.query(sql))
  onTestFinished(() => new Promise((resolve) => pool.end(() => resolve())))
  return storeOn({ pool })
}

const rows = () => query('SELECT * FROM once_per_key_records')

describe('the first command says what is wrong, and nothing is changed:', () => {
  const claim = async (store: MySqlStore) => store.begin('wrong', claimOf('t'))

  test.each([
    ['a read-only session', 'SET SESSION TRANSACTION READ ONLY', 'read_only', /primary/],
    ['no strict mode', "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'", 'database_unsuitable', /STRICT_TRANS_TABLES/],
    ['dirty reads', `SET SESSION ${ISOLATION} = 'READ-UNCOMMITTED'`, 'database_unsuitable', /READ UNCOMMITTED/],
    [
      'rows that are left out',
      'SET SESSION sql_select_limit = 1',
      'database_unsuitable',
      /cannot be read.*sql_select_limit/,
    ],
    ['results of ucs2', 'SET SESSION character_set_results = ucs2', 'database_unsuitable', /cannot be read.*_results/],
    ['no autocommit', 'SET SESSION autocommit = 0', 'database_unsuitable', /autocommit/],
  ])('%s', async (_name, sql, code, message) => {
    const before = await rows()
    await expect(claim(storeWith(sql))).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
    expect(await rows()).toEqual(before)
  })

  // MySQL has neither of them.
  test.skipIf(IS_MYSQL).each(['ORACLE', 'EMPTY_STRING_IS_NULL'])('the SQL mode %s', async (mode) => {
    const before = await rows()
    const store = storeWith(`SET SESSION sql_mode = '${mode},STRICT_TRANS_TABLES'`)
    const message = expect.stringMatching(`sql_mode.*${mode}`)
    await expect(claim(store)).rejects.toMatchObject({ code: 'database_unsuitable', message })
    expect(await rows()).toEqual(before)
  })

  test('no tables', async () => {
    const pool = openPool(await server.createDatabase('bare'))
    onTestFinished(() => pool.end())
    await expect(claim(storeOn({ pool }))).rejects.toMatchObject({
      code: 'schema_missing',
      message: expect.stringContaining('migrate()'),
    })
  })

  test('no database of this name', async () => {
    const pool = openPool(server.url('nowhere'))
    onTestFinished(() => pool.end())
    await expect(claim(storeOn({ pool }))).rejects.toMatchObject({ code: 'schema_missing' })
  })

  test('tables without transactions', async () => {
    const pool = openPool(await server.createDatabase('myisam'))
    onTestFinished(() => pool.end())
    const store = storeOn({ pool })
    await store.migrate()
    await pool.query('ALTER TABLE once_per_key_records ENGINE = MyISAM ROW_FORMAT = DEFAULT')
    await expect(claim(store)).rejects.toMatchObject({
      code: 'database_unsuitable',
      message: expect.stringContaining('MyISAM'),
    })
  })

  test('a user without the privileges', async () => {
    await query("CREATE USER 'reader'@'127.0.0.1'")
    await query("GRANT SELECT ON payments.* TO 'reader'@'127.0.0.1'")
    const pool = openPool(url.replace('root@', 'reader@'))
    onTestFinished(() => pool.end())
    await expect(claim(storeOn({ pool }))).rejects.toMatchObject({
      code: 'permission_denied',
      message: expect.stringContaining('SELECT, INSERT, UPDATE and DELETE'),
    })
    await expect(storeOn({ pool, prefix: 'other_' }).migrate()).rejects.toMatchObject({ code: 'permission_denied' })
  })

  // As root, whom a server does not refuse.
  test.each<[string, (store: MySqlStore) => Promise<unknown>]>([
    ['a first claim', (store) => store.begin('new', claimOf('t'))],
    ['a claim', (store) => store.begin('k', claimOf('other'))],
    ['a renewal', (store) => store.renew('k', { ...ownOf('t'), leaseMs: 30_000 })],
    ['a completion', (store) => store.complete('k', { ...ownOf('t'), answer: ANSWER })],
    [
      'a release: not even what it shows is believed',
      (store) => store.release('k', { ...ownOf('x'), failedMs: 1_000 }),
    ],
  ])('a server that is read-only, as a replica is, at %s', async (_name, command) => {
    await store.begin('k', claimOf('t'))
    const before = await rows()
    await query('SET GLOBAL read_only = 1')
    try {
      await expect(command(store)).rejects.toMatchObject({ code: 'read_only' })
    } finally {
      await query('SET GLOBAL read_only = 0')
    }
    expect(await rows()).toEqual(before)
  })

  test('a binary log of statements, which a replica carries out by its own settings', async () => {
    const logging = await startMariaDb({ log_bin: 'bin' })
    onTestFinished(() => logging.close())
    const uri = await logging.createDatabase('payments')
    await storeWith('DO 0', uri).migrate()
    const claiming = (sql: string) => claim(storeWith(sql, uri))
    expect(await claiming("SET SESSION binlog_format = 'MIXED'")).toMatchObject({ acquired: true })
    await expect(claiming("SET SESSION binlog_format = 'STATEMENT'")).rejects.toMatchObject({
      code: 'database_unsuitable',
      message: expect.stringContaining('binlog_format'),
    })
  })

  // MariaDB tells the version that it was told to; MySQL its own.
  test.skipIf(IS_MYSQL)('a server that is too old', async () => {
    const old = await startMariaDb({ version: '10.5.27-MariaDB' })
    onTestFinished(() => old.close())
    const pool = openPool(await old.createDatabase('payments'))
    onTestFinished(() => pool.end())
    await expect(claim(storeOn({ pool }))).rejects.toMatchObject({
      code: 'database_unsuitable',
      message: expect.stringContaining('needs MySQL 8.0.19 or MariaDB 10.6'),
    })
  })

  test('a server that does not answer the connection', async () => {
    const pool = openPool('mysql://root@127.0.0.1:1/payments')
    onTestFinished(() => pool.end())
    await expect(claim(storeOn({ pool }))).rejects.toMatchObject({ code: 'connection_lost' })
  })
})

test.each([
  ['8.0.19', true],
  ['8.0.18', false],
  ['5.7.44-log', false],
  ['9.4.0', true],
  ['8.4.3-commercial', true],
  ['10.6.0-MariaDB', true],
  ['5.5.5-10.6.12-MariaDB-log', true],
  ['10.5.27-MariaDB-1:10.5.27+maria~ubu2004', false],
  ['11.8.2-MariaDB', true],
  ['', false],
])('version %s is new enough: %s', (version, isEnough) => {
  expect(findVersionFault(version) === null).toBe(isEnough)
})

test('a user needs four privileges on two tables, and no other', async () => {
  await query("CREATE USER 'writer'@'127.0.0.1'")
  for (const table of ['records', 'sweeps'])
    await query(`GRANT SELECT, INSERT, UPDATE, DELETE ON payments.once_per_key_${table} TO 'writer'@'127.0.0.1'`)
  const pool = openPool(url.replace('root@', 'writer@'))
  onTestFinished(() => pool.end())
  const store = storeOn({ pool })
  expect(await store.begin('few', claimOf('t'))).toMatchObject({ acquired: true })
  expect(await store.complete('few', { ...ownOf('t'), answer: ANSWER })).toEqual({ ok: true })
  expect(await store.begin('few', claimOf('t2'))).toMatchObject({ acquired: false, record: { state: 'completed' } })
  await store.sweep()
})

test.each(['assumed', 'in-transaction'] as const)(
  'a transaction on a server that has become read-only is rolled back (%s)',
  async (effects) => {
    const application = openPool(url)
    onTestFinished(() => application.end())
    const store = storeOn({ pool, transactions: application })
    const { serve, errors, close } = payoutServers({ store, effects })
    onTestFinished(close)
    await query('CREATE TABLE IF NOT EXISTS effects (id INT) ENGINE = InnoDB')
    onTestFinished(() => query('SET GLOBAL read_only = 0') as Promise<never>)
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await tx.query('INSERT INTO effects VALUES (1)')
        await query('SET GLOBAL read_only = 1')
        res.status(201).end()
      })
    })
    expect((await post({ key: effects })).status).not.toBe(201)
    expect(errors).toMatchObject([{ code: 'read_only' }])
    expect(await query('SELECT * FROM effects')).toEqual([])
  },
)

describe('a connection that the application gave back with an open transaction', () => {
  test.each(['START TRANSACTION', 'SET autocommit = 0'])('confirms nothing (%s)', async (sql) => {
    const shared = openPool(url, { connectionLimit: 1 })
    onTestFinished(() => shared.end())
    const store = storeOn({ pool: shared })
    await store.begin(`before ${sql}`, claimOf('t'))
    const connection = await shared.getConnection()
    await connection.query(sql)
    connection.release()
    await expect(store.begin(sql, claimOf('t'))).rejects.toMatchObject({ code: 'connection_in_use' })
    expect(await store.inspect(sql)).toBeNull()
    expect(await store.begin(sql, claimOf('t'))).toMatchObject({ acquired: true })
  })
})

describe('an answer that is larger than the server takes', () => {
  test('is not kept, and everything else is', async () => {
    await query('SET GLOBAL max_allowed_packet = 1048576')
    const small = openPool(url)
    onTestFinished(async () => {
      await small.end()
      await query('SET GLOBAL max_allowed_packet = 16777216')
    })
    const store = storeOn({ pool: small })
    const events: StoreEvent[] = []
    store.observe((event) => events.push(event))
    await store.begin('large', claimOf('t'))
    const answer = { ...ANSWER, body: Buffer.alloc(600_000, 7) }
    expect(await store.complete('large', { ...ownOf('t'), answer })).toEqual({ ok: true })
    expect(await store.begin('large', claimOf('t2'))).toMatchObject({ record: { answer: { status: 201, body: null } } })
    expect(events).toEqual([{ type: 'answer_dropped' }])
  })

  test('is kept where it fits', async () => {
    await store.begin('fits', claimOf('t'))
    const answer = { ...ANSWER, body: Buffer.alloc(1_048_576, 7) }
    await store.complete('fits', { ...ownOf('t'), answer })
    const begun = (await store.begin('fits', claimOf('t2'))) as unknown as { record: { answer: { body: Buffer } } }
    expect(begun.record.answer.body.equals(answer.body)).toBe(true)
  })
})

test('errors contain neither a key nor an answer', async () => {
  const gone = openPool(await server.createDatabase('dropped'))
  onTestFinished(() => gone.end())
  const store = storeOn({ pool: gone })
  await store.migrate()
  await store.begin('first', claimOf('t'))
  await gone.query('DROP TABLE once_per_key_records')
  const answer = { ...ANSWER, body: Buffer.from('secret answer') }
  const error = (await store.complete('secret key', { ...ownOf('t'), answer }).catch((error) => error)) as Error
  expect(error).toMatchObject({ code: 'schema_missing' })
  const shown = JSON.stringify([error, error.cause, { ...error }, { ...(error.cause as object) }, error.stack])
  for (const secret of ['secret key', 'secret answer', Buffer.from('secret answer').toString('hex')])
    expect(shown.toLowerCase()).not.toContain(secret)
})

describe.each(['ucs2', 'utf16', 'utf32'])('texts of %s', (charset) => {
  const works = async (store: MySqlStore) => {
    const key = `${charset} é`
    expect(await store.begin(key, claimOf('t'))).toMatchObject({ acquired: true })
    expect(await store.complete(key, { ...ownOf('t'), answer: ANSWER })).toEqual({ ok: true })
    expect(await store.begin(key, claimOf('t2'))).toMatchObject({ acquired: false, record: { state: 'completed' } })
  }

  test('may be the default of the database', async () => {
    await query(`CREATE DATABASE in_${charset} CHARACTER SET ${charset}`)
    const store = storeWith('DO 0', server.url(`in_${charset}`))
    await store.migrate()
    await works(store)
  })

  test('may be what the sessions compare', async () => {
    await works(storeWith(`SET SESSION collation_connection = '${charset}_bin'`))
  })
})

test('a sweep removes rows in sessions of safe updates, too', async () => {
  await query('DELETE FROM once_per_key_records')
  await store.begin('expired', claimOf('t'))
  await query('UPDATE once_per_key_records SET expires_at = 1')
  expect(await storeWith('SET SESSION sql_safe_updates = 1').sweep()).toBe(1)
})

test('a record is read as it was written by sessions of Shift JIS, in which a backslash is another character', async () => {
  const narrow = openPool(url, { charset: 'SJIS_JAPANESE_CI' })
  onTestFinished(() => narrow.end())
  const store = storeOn({ pool: narrow })
  const answer = { ...ANSWER, headers: [['ETag', '"v1"'] as const] }
  await store.complete('sjis', { ...ownOf('t'), answer })
  expect(await store.inspect('sjis')).toMatchObject({ answer: { headers: answer.headers } })
})

test('a sweep of a small table waits for no row that has not expired, and lets none wait', async () => {
  await query('DELETE FROM once_per_key_records')
  // In the order of the ids the held row is behind the others.
  for (const key of ['a', 'b', 'c', 'z113']) await store.begin(key, claimOf('t'))
  await query("UPDATE once_per_key_records SET expires_at = 1 WHERE name <> 'z113'")
  const holding: PoolConnection = await pool.getConnection()
  await holding.query('START TRANSACTION')
  await holding.query("SELECT * FROM once_per_key_records WHERE id = UNHEX(SHA2('z113', 256)) FOR UPDATE")
  try {
    expect(await store.sweep()).toBe(3)
  } finally {
    await holding.query('ROLLBACK')
    holding.release()
  }
})

test('keys are listed as they are, whatever the sessions make of texts', async () => {
  const narrow = openPool(url, { charset: 'latin1_swedish_ci' })
  onTestFinished(() => narrow.end())
  await store.begin('schön:kéy😀', claimOf('t'))
  expect((await storeOn({ pool: narrow }).listScope('schön', null)).records).toMatchObject([{ key: 'schön:kéy😀' }])
})

test('the schema for a migration tool may be run twice, and creates what `migrate` creates', async () => {
  const other = openPool(await server.createDatabase('migrated'), { multipleStatements: true })
  onTestFinished(() => other.end())
  for (let times = 0; times < 2; times++) await other.query(MySqlStore.schemaSql())
  await storeOn({ pool: other }).migrate()
  const createdIn = async (pool: Pool) => {
    const [[row]] = (await pool.query('SHOW CREATE TABLE once_per_key_records')) as unknown as [
      [{ 'Create Table': string }],
    ]
    return row['Create Table']
  }
  expect(await createdIn(other)).toBe(await createdIn(pool))
})

test('commands that wait for a connection are reported', async () => {
  const narrow = openPool(url, { connectionLimit: 1 })
  onTestFinished(() => narrow.end())
  const store = storeOn({ pool: narrow })
  const events: StoreEvent[] = []
  store.observe((event) => events.push(event))
  const held: PoolConnection = await narrow.getConnection()
  const claimed = store.begin('waits', claimOf('t'))
  await vi.waitFor(() => expect(events).toMatchObject([{ type: 'connections_exhausted', waiting: 1 }]))
  held.release()
  expect(await claimed).toMatchObject({ acquired: true })
})

test('a claim that gets no connection in time is not sent; what has run waits for its turn', async () => {
  const narrow = openPool(url, { connectionLimit: 1 })
  onTestFinished(() => narrow.end())
  const store = storeOn({ pool: narrow })
  await store.begin('has run', claimOf('t'))
  const held: PoolConnection = await narrow.getConnection()
  const completed = store.complete('has run', { ...ownOf('t'), answer: ANSWER })
  completed.catch(() => {})
  await expect(store.begin('too late', claimOf('t'))).rejects.toMatchObject({ code: 'connections_exhausted' })
  held.release()
  expect(await completed).toEqual({ ok: true })
  expect(await store.inspect('too late')).toBeNull()
})

test('a result of a step, and each statement of a completion, waits for its turn', async () => {
  const narrow = openPool(url, { connectionLimit: 1 })
  onTestFinished(() => narrow.end())
  const store = storeOn({ pool: narrow })
  await store.begin('steps', claimOf('t'))
  const waited = (key: string) =>
    expect(store.begin(key, claimOf('t'))).rejects.toMatchObject({ code: 'connections_exhausted' })
  const first: PoolConnection = await narrow.getConnection()
  const done = {
    ...ownOf('t'),
    label: 'a',
    order: 1,
    state: 'done',
    result: Buffer.from('1'),
    leaseMs: 30_000,
  } as const
  const ended = Promise.all([
    store.step('steps', done),
    // It has been lost, so its completion takes several statements.
    store.complete('has run and was lost', { ...ownOf('t'), answer: ANSWER }),
  ])
  ended.catch(() => {})
  const second: Promise<PoolConnection> = narrow.getConnection()
  await waited('too late for the first turn')
  first.release()
  const held = await second
  await waited('too late for the second turn')
  held.release()
  expect(await ended).toEqual([{ ok: true }, { ok: true }])
})

test('an engine that waits for less than two seconds for a reply has its claims given up sooner', async () => {
  const narrow = openPool(url, { connectionLimit: 1 })
  onTestFinished(() => narrow.end())
  const store = storeOn({ pool: narrow })
  for (const storeTimeoutMs of [400, 2_000]) runner({ store, name: 'jobs', storeTimeoutMs })
  const held: PoolConnection = await narrow.getConnection()
  const told = { code: 'connections_exhausted', message: expect.stringContaining('within 300 ms') }
  await expect(store.begin('late', claimOf('t'))).rejects.toMatchObject(told)
  held.release()
})

test('a claim for which the pool opens a connection waits for it as long as the engine does', async () => {
  const proxy = await startFaultProxy(server.port)
  onTestFinished(() => proxy.close())
  const slow = openPool(url.replace(`${server.port}`, `${proxy.port}`), { connectionLimit: 1 })
  onTestFinished(() => slow.end())
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const handshake = proxy.hold(new URL(url).pathname.slice(1))
  const claimed = storeOn({ pool: slow }).begin('opens one', claimOf('t'))
  const sendOn = await handshake
  await vi.advanceTimersByTimeAsync(5_000)
  vi.useRealTimers()
  sendOn()
  expect(await claimed).toMatchObject({ acquired: true })
})

test.each([
  [{ pool: url }, /pool: expected a pool of `mysql2`/],
  [{ pool: createConnection }, /pool/],
  [{ pool, prefix: 'a-b' }, /prefix/],
  [{ pool, sweep: true }, /sweeps/],
])('options are checked (%#)', (options, message) => {
  expect(() => new MySqlStore(options as never)).toThrow(message)
})
