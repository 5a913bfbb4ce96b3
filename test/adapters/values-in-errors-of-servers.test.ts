import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Answer, Store } from 'once-per-key/core'
import type { MySqlStore } from 'once-per-key/mysql'
import type { PostgresStore } from 'once-per-key/postgres'
import { SqliteStore } from 'once-per-key/sqlite'
import type { PoolClient } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { payoutServers } from '../support/payout-servers.js'
import { expectNothingOf, secretOf } from '../support/secrets.js'
import { claimOf, ownOf } from './claims.js'
import { storeOn as mySqlOn, openStore as openMySql, openPool as openMySqlPool } from './mysql/open-store.js'
import { openPool, openStore, storeOn } from './postgres/open-store.js'
import { A_DRIVER, openDatabase } from './sqlite/drivers.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const KEY = secretOf('zebra of the key')
const BODY = secretOf('"zebra" of the body')
const HEADER = secretOf("zebra's header")
const LABEL = secretOf('zebra of the step')
const SECRETS = [KEY, BODY, HEADER, LABEL]

const ANSWER: Answer = {
  status: 201,
  statusMessage: '',
  headers: [['x-secret', HEADER.words]],
  body: Buffer.from(BODY.words.repeat(3)),
}

type Command = (store: Store) => unknown
const COMMANDS: [string, Command][] = [
  ['a claim', (store) => store.begin(KEY.words, claimOf('t'))],
  ['a completion', (store) => store.complete(KEY.words, { ...ownOf('t'), answer: ANSWER })],
  [
    'a step',
    (store) => {
      const result = Buffer.from(BODY.words)
      return store.step?.(KEY.words, {
        ...ownOf('t'),
        label: LABEL.words,
        order: 1,
        state: 'done',
        result,
        leaseMs: 9_000,
      })
    },
  ],
]

/** Some statement fails, or all of them succeed: of what fails nothing is shown. */
async function expectSilent(store: Store): Promise<number> {
  let failed = 0
  for (const [, command] of COMMANDS) {
    await Promise.resolve()
      .then(() => command(store))
      .catch((error: unknown) => {
        failed++
        expectNothingOf(error, SECRETS)
      })
  }
  return failed
}

describe('MySQL', async () => {
  const { query, url, server } = await openMySql()

  /** A store on one session of a database of its own, which has been used. */
  async function used(name: string) {
    const pool = openMySqlPool(await server.createDatabase(`values_${name}`), { connectionLimit: 1 })
    onTestFinished(() => pool.end())
    const store = mySqlOn({ pool })
    await store.migrate()
    await store.begin('used', claimOf('t'))
    return { store, pool }
  }

  test.each([
    ['syntax', "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ORACLE')"],
    ['quotes', "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES'), character_set_client = latin1"],
    ['table', 'DROP TABLE once_per_key_records'],
    ['constraint', "ALTER TABLE once_per_key_records ADD CONSTRAINT c CHECK (name <> 'x' AND LENGTH(name) < 5)"],
    ['type', 'ALTER TABLE once_per_key_records MODIFY name INT, MODIFY head INT, MODIFY steps INT'],
    ['length', 'ALTER TABLE once_per_key_records MODIFY name VARBINARY(5), MODIFY head VARBINARY(5)'],
    [
      'trigger',
      'CREATE TRIGGER t BEFORE INSERT ON once_per_key_records FOR EACH ROW SIGNAL SQLSTATE "45000" SET MESSAGE_TEXT = "no"',
    ],
  ])('an error of the store shows nothing of its statements: %s', async (name, sql) => {
    const { store, pool } = await used(name)
    await pool.query('DELETE FROM once_per_key_records')
    await pool.query(sql)
    const failed = await expectSilent(store)
    if (name !== 'quotes') expect(failed).toBeGreaterThan(0)
  })

  test.each(['assumed', 'in-transaction'] as const)(
    'nor does one in a transaction of the application, whose session speaks another dialect (effects: %s)',
    async (effects) => {
      const application = openMySqlPool(url)
      onTestFinished(() => application.end())
      const store: MySqlStore<typeof application> = mySqlOn({
        pool: openMySqlPool(url),
        transactions: application,
      }) as never
      const { serve, errors, events, close } = payoutServers({ store, effects })
      onTestFinished(close)
      await query('CREATE TABLE IF NOT EXISTS effects (id INT) ENGINE = InnoDB')
      const post = await serve(async (_req, res, context) => {
        await store.transaction(context, async (tx) => {
          await tx.query('INSERT INTO effects VALUES (1)')
          await tx.query("SET SESSION sql_mode = CONCAT(@@sql_mode, ',ORACLE')")
          res.status(201).set('x-secret', HEADER.words).send(BODY.words)
        })
      })
      expect((await post({ key: KEY.words })).status).toBe(500)
      expect(errors).toHaveLength(1)
      expectNothingOf(errors[0], SECRETS)
      for (const event of events) if ('error' in event) expectNothingOf(event.error, [BODY, HEADER])
    },
  )

  test('nor does one of a lock that was not given up', async () => {
    const { store } = await used('locks')
    const other = openMySqlPool(url.replace(/[^/]*$/, 'values_locks'))
    onTestFinished(() => other.end())
    await store.begin(KEY.words, claimOf('t'))
    const holder = await other.getConnection()
    await holder.query('START TRANSACTION')
    await holder.query('SELECT * FROM once_per_key_records FOR UPDATE')
    try {
      const error = await store
        .complete(KEY.words, { ...ownOf('t'), answer: ANSWER })
        .catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: 'record_locked' })
      expectNothingOf(error, SECRETS)
    } finally {
      holder.destroy()
    }
  })
})

describe('Postgres', async () => {
  const { url, server, query } = await openStore()

  async function prepared(name: string, sql: string) {
    const pool = openPool(await server.createDatabase(`values_${name}`))
    onTestFinished(() => pool.end())
    await storeOn({ pool }).migrate()
    await pool.query(sql)
    return pool
  }

  /** As some clients do: the values stand in the text. */
  const inlining = (pool: Awaited<ReturnType<typeof prepared>>) => async (text: string, values: unknown[]) =>
    pool.query(
      text.replace(/\$(\d+)/g, (_all, n) => {
        const value = values[Number(n) - 1]
        if (value === null) return 'NULL'
        return Buffer.isBuffer(value) ? `'\\x${value.toString('hex')}'` : `'${String(value).replaceAll("'", "''")}'`
      }),
    )

  const FAULTS: [string, string][] = [
    ['constraint', "ALTER TABLE once_per_key.records ADD CONSTRAINT c CHECK (name NOT LIKE 'zebra%')"],
    ['type', 'ALTER TABLE once_per_key.records ALTER name TYPE bigint USING 1'],
    ['column', 'ALTER TABLE once_per_key.records DROP COLUMN revision'],
    [
      'trigger',
      `CREATE FUNCTION loud() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION USING MESSAGE = format('no: "%s"', NEW), DETAIL = NEW.name, HINT = NEW.name; END $$;
       CREATE TRIGGER loud BEFORE INSERT OR UPDATE ON once_per_key.records FOR EACH ROW EXECUTE FUNCTION loud()`,
    ],
    [
      'slow',
      `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(20); RETURN NEW; END $$;
       CREATE TRIGGER slow BEFORE INSERT OR UPDATE ON once_per_key.records FOR EACH ROW EXECUTE FUNCTION slow();
       ALTER ROLE CURRENT_USER IN DATABASE values_slow SET statement_timeout = '200ms'`,
    ],
  ]

  test.each(FAULTS)('an error of the store shows nothing of its statements: %s', async (name, sql) => {
    const pool = await prepared(name, sql)
    const fresh = openPool(server.url(`values_${name}`))
    onTestFinished(() => fresh.end())
    expect(await expectSilent(storeOn({ pool: fresh }))).toBeGreaterThan(0)
    expect(await expectSilent(storeOn({ query: inlining(fresh) }))).toBeGreaterThan(0)
    expect(pool.totalCount).toBeGreaterThan(0)
  })

  test('nor does one of a client that writes the values into a text that is wrong', async () => {
    const pool = await prepared('syntax', 'SELECT 1')
    const broken = async (text: string, values: unknown[]) => inlining(pool)(text.replace(',', ' '), values)
    expect(await expectSilent(storeOn({ query: broken }))).toBe(COMMANDS.length)
  })

  test.each(['assumed', 'in-transaction'] as const)('nor does one in a transaction (effects: %s)', async (effects) => {
    await query(
      "ALTER TABLE once_per_key.records DROP CONSTRAINT IF EXISTS c, ADD CONSTRAINT c CHECK (head NOT LIKE '%zebra%')",
    )
    await query('CREATE TABLE IF NOT EXISTS effects (id int)')
    const [pool, application] = [openPool(url), openPool(url)]
    onTestFinished(async () => void (await Promise.all([pool.end(), application.end()])))
    const store: PostgresStore<typeof application> = storeOn({ pool, transactions: application }) as never
    const { serve, errors, close } = payoutServers({ store, effects })
    onTestFinished(close)
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx: PoolClient) => {
        await tx.query('INSERT INTO effects VALUES (1)')
        res.status(201).set('x-secret', HEADER.words).send(BODY.words)
      })
    })
    expect((await post({ key: KEY.words })).status).toBe(500)
    expect(errors).toMatchObject([{ code: '23514', constraint: 'c' }])
    expectNothingOf(errors[0], SECRETS)
  })
})

test.each([
  [
    'a constraint',
    "CREATE TRIGGER c BEFORE INSERT ON once_per_key_records WHEN NEW.key LIKE 'zebra%' BEGIN SELECT RAISE(ABORT, 'no'); END",
  ],
  ['a unique index', 'CREATE UNIQUE INDEX one ON once_per_key_records (state)'],
  ['a type', 'ALTER TABLE once_per_key_records RENAME COLUMN head TO tail'],
  ['a table', 'ALTER TABLE once_per_key_records RENAME TO elsewhere'],
])('an error of a SqliteStore shows nothing of its statements: %s', async (_name, sql) => {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-values-'))
  const database = openDatabase(A_DRIVER, join(folder, 'records.db'))
  onTestFinished(async () => {
    database.close()
    await rm(folder, { recursive: true })
  })
  const store = new SqliteStore({ database })
  await store.begin('used', claimOf('t'))
  database.exec(sql)
  expect(await expectSilent(store)).toBeGreaterThan(0)
})
