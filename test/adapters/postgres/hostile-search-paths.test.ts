import { PostgresStore } from 'once-per-key/postgres'
import { storeLaws } from 'once-per-key/testing'
import type { PoolClient } from 'pg'
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { examinePostgres } from '../../../bin/doctor/postgres.js'
import { payoutServers } from '../../support/payout-servers.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ maxConcurrency: 10, testTimeout: 60_000, hookTimeout: 60_000 })

/** In a schema that a session searches before `pg_catalog`. Each does something else than Postgres's own of this name. */
const HOSTILE = `
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '2001-01-01'::timestamptz $$;
CREATE FUNCTION hostile.statement_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '2001-01-01'::timestamptz $$;
CREATE FUNCTION hostile.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '2001-01-01'::timestamptz $$;
CREATE FUNCTION hostile.date_trunc(text, timestamptz) RETURNS timestamptz LANGUAGE sql AS $$ SELECT '2001-01-01'::timestamptz $$;
CREATE FUNCTION hostile.sha256(bytea) RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN RETURN gen_random_uuid()::text::bytea; END $$;
CREATE FUNCTION hostile.encode(bytea, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN md5(random()::text); END $$;
CREATE FUNCTION hostile.length(text) RETURNS integer LANGUAGE sql AS $$ SELECT 0 $$;
CREATE FUNCTION hostile.starts_with(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
CREATE FUNCTION hostile.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT 'on' $$;
CREATE FUNCTION hostile.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT NULL::text $$;
CREATE FUNCTION hostile.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT $2 $$;
CREATE FUNCTION hostile.pg_try_advisory_xact_lock(bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
CREATE FUNCTION hostile.pg_try_advisory_xact_lock_shared(bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
CREATE FUNCTION hostile.pg_current_xact_id_if_assigned() RETURNS xid8 LANGUAGE sql AS $$ SELECT '1'::xid8 $$;
CREATE FUNCTION hostile.pg_relation_size(regclass) RETURNS bigint LANGUAGE sql AS $$ SELECT 0::bigint $$;
CREATE FUNCTION hostile.never(bytea, bytea) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN false; END $$;
CREATE FUNCTION hostile.never(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN false; END $$;
CREATE FUNCTION hostile.never(timestamptz, timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN false; END $$;
CREATE FUNCTION hostile.never(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN false; END $$;
CREATE FUNCTION hostile.never(smallint, integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN false; END $$;
CREATE FUNCTION hostile.never(tid, tid) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN false; END $$;
CREATE FUNCTION hostile.none(bigint, bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN 0; END $$;
CREATE FUNCTION hostile.none(text, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN ''; END $$;
CREATE FUNCTION hostile.floor(double precision) RETURNS double precision LANGUAGE sql AS $$ SELECT 0::double precision $$;
CREATE FUNCTION hostile.date_part(text, timestamptz) RETURNS double precision LANGUAGE sql AS $$ SELECT 0::double precision $$;
CREATE FUNCTION hostile.date_part(text, interval) RETURNS double precision LANGUAGE sql AS $$ SELECT 0::double precision $$;
CREATE FUNCTION hostile.row_to_json(record) RETURNS json LANGUAGE plpgsql AS $$ BEGIN RETURN '{}'::json; END $$;
CREATE FUNCTION hostile.to_regclass(text) RETURNS regclass LANGUAGE sql AS $$ SELECT 'pg_catalog.pg_class'::regclass $$;
CREATE OPERATOR hostile.= (FUNCTION = hostile.never, LEFTARG = bytea, RIGHTARG = bytea);
CREATE OPERATOR hostile.= (FUNCTION = hostile.never, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR hostile.<> (FUNCTION = hostile.never, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR hostile.< (FUNCTION = hostile.never, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE OPERATOR hostile.>= (FUNCTION = hostile.never, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE OPERATOR hostile.= (FUNCTION = hostile.never, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR hostile.= (FUNCTION = hostile.never, LEFTARG = smallint, RIGHTARG = integer);
CREATE OPERATOR hostile.= (FUNCTION = hostile.never, LEFTARG = tid, RIGHTARG = tid);
CREATE OPERATOR hostile.<= (FUNCTION = hostile.never, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR hostile.> (FUNCTION = hostile.never, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR hostile.+ (FUNCTION = hostile.none, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR hostile.|| (FUNCTION = hostile.none, LEFTARG = text, RIGHTARG = text);
CREATE TYPE hostile.text AS (wrong integer);
CREATE TYPE hostile.bytea AS (wrong integer);
CREATE TYPE hostile.timestamptz AS (wrong integer);
CREATE TYPE hostile.int8 AS (wrong integer);
CREATE TYPE hostile.tid AS (wrong integer);
CREATE TABLE hostile.records (wrong integer);
CREATE TABLE hostile.pg_attribute (wrong integer);
`

const { url, query } = await openStore({})
await query(HOSTILE)
await query('CREATE TABLE public.effects (id varchar)')
const PATH = { options: '-c search_path=hostile,pg_catalog,public' }
const pool = openPool(url, PATH)
const application = openPool(url, PATH)
const store = storeOn({ pool, transactions: application })
afterAll(async () => {
  await pool.end()
  await application.end()
})

describe('with functions, operators and types before those of Postgres,', () => {
  storeLaws(test.concurrent, async () => ({ store: storeOn({ pool }) }), {
    operable: true,
    listable: true,
    forgetful: true,
    stepped: true,
  })
})

describe.each(['assumed', 'in-transaction'] as const)('in such a session (effects: %s)', (effects) => {
  const { serve, errors, forget, close } = payoutServers({ store, effects })
  beforeEach(async () => {
    await query('TRUNCATE once_per_key.records, public.effects')
    forget()
  })
  afterEach(close)
  const insert = (tx: PoolClient) => tx.query("INSERT INTO public.effects VALUES ('e1')")

  test('a payment that is sent twice has one effect, whose record is kept', async () => {
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({ id: 'e1' })
      })
    })
    expect(await post()).toMatchObject({ status: 201, replayed: false })
    expect(await post()).toMatchObject({ status: 201, replayed: true })
    expect(await query('SELECT id FROM public.effects')).toHaveLength(1)
    const kept = await query(
      'SELECT expires_at > (extract(epoch FROM now()) + 3600) * 1000 AS kept FROM once_per_key.records',
    )
    expect(kept).toEqual([{ kept: true }])
    expect(errors).toEqual([])
  })

  test('a transaction that wrote nothing is rolled back', async () => {
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async () => void res.status(201).end())
    })
    expect((await post()).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'nothing_written' }])
  })

  test('attempts at once have one effect', async () => {
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        await tx.query('SELECT pg_sleep(0.1)')
        res.status(201).end()
      })
    })
    const told = await Promise.all(Array.from({ length: 5 }, () => post()))
    expect(told.filter(({ status, replayed }) => status === 201 && !replayed)).toHaveLength(1)
    expect(await query('SELECT id FROM public.effects')).toHaveLength(1)
  })
})

test('a step runs once, and completeIn completes', async () => {
  const { serve, errors, close } = payoutServers({ store })
  onTestFinished(close)
  let turns = 0
  const post = await serve(async (_req, res, context) => {
    await store.step(context, 'reserve', async (tx) => {
      await tx.query("INSERT INTO public.effects VALUES ('step')")
      return null
    })
    turns++
    if (turns === 1) return void res.status(500).end()
    const tx = await application.connect()
    try {
      await tx.query('BEGIN')
      await tx.query("INSERT INTO public.effects VALUES ('by hand')")
      await store.completeIn(tx, context, { status: 201 })
      await tx.query('COMMIT')
    } finally {
      tx.release()
    }
    res.status(201).end()
  })
  await query('TRUNCATE public.effects')
  expect((await post({ key: 'steps' })).status).toBe(500)
  expect((await post({ key: 'steps' })).status).toBe(201)
  expect(await post({ key: 'steps' })).toMatchObject({ status: 201, replayed: true })
  expect(errors).toEqual([])
  expect(await query('SELECT id FROM public.effects ORDER BY id')).toEqual([{ id: 'by hand' }, { id: 'step' }])
})

test('a sweep removes what has expired, and nothing else', async () => {
  await query('TRUNCATE once_per_key.records')
  const claim = { scope: 's', fingerprint: 'f', leaseMs: 30_000, retentionMs: 60_000, unknownOutcome: 'rerun' } as const
  for (const key of ['live', 'expired']) await store.begin(key, { ...claim, token: key })
  await query("UPDATE once_per_key.records SET expires_at = 1 WHERE name = 'expired'")
  expect(await store.sweep()).toBe(1)
  expect(await query('SELECT name FROM once_per_key.records')).toEqual([{ name: 'live' }])
})

test('the doctor finds what it finds in any other session', async () => {
  const examined = async (asked: typeof pool) => {
    const target = { kind: 'postgres', store, schema: 'once_per_key', pool: asked, close: async () => {} } as const
    const { findings } = await examinePostgres(target)
    return findings.map(({ color, about }) => ({ color, about }))
  }
  const plain = openPool(url)
  onTestFinished(() => plain.end())
  expect(await examined(pool)).toEqual(await examined(plain))
})

describe('the schema', () => {
  test('is created as everywhere else by migrate()', async () => {
    const other = storeOn({ pool, schema: 'other' })
    await other.migrate()
    const shape = (schema: string) =>
      query(
        `SELECT table_name, column_name, udt_schema, udt_name, is_nullable FROM information_schema.columns
         WHERE table_schema = '${schema}' ORDER BY table_name, ordinal_position`,
      )
    expect(await shape('other')).not.toEqual([])
    expect(await shape('other')).toEqual(await shape('once_per_key'))
    const claim = { scope: 's', fingerprint: 'f', leaseMs: 30_000, retentionMs: 60_000 } as const
    const begun = await other.begin('k', { ...claim, token: 't', unknownOutcome: 'rerun' })
    expect(begun).toMatchObject({ acquired: true, attempt: 1 })
  })

  test('is refused by its text for a migration tool, in a session that would build it of something else', async () => {
    const connection = await pool.connect()
    onTestFinished(() => connection.release())
    await expect(connection.query(PostgresStore.schemaSql({ schema: 'third' }))).rejects.toThrow(/search_path/)
    expect(await query("SELECT to_regnamespace('third') AS found")).toEqual([{ found: null }])
  })

  test('is tables alone, without functions, triggers or types of its own', async () => {
    const inSchema = "'once_per_key'::regnamespace"
    const others = await query(
      `SELECT proname AS name FROM pg_proc WHERE pronamespace = ${inSchema}
       UNION ALL SELECT typname FROM pg_type t WHERE typnamespace = ${inSchema} AND typrelid = 0 AND typelem = 0
       UNION ALL SELECT tgname FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = ${inSchema})`,
    )
    expect(others).toEqual([])
  })
})
