import { buildCommandsSql } from './commands.js'
import { BY_INDEX, BY_POSTGRES, FORMAT } from './plpgsql.js'
import { buildTransactionsSql } from './transactions.js'
import { buildUnclaimedSql } from './unclaimed.js'
import { buildWalksSql } from './walks.js'

/**
 * The revision of the SQL below, incremented with each change: `migrate` replaces functions of an earlier revision, and
 * leaves those of a later one. The version in a function's name is that of its parameters, so processes of an older and
 * a newer library can share a database during a deployment.
 */
export const REVISION = 1

/** The name as an SQL identifier. The option's rule guarantees that it needs no escaping. */
export function toQuotedName(schema: string): string {
  return `"${schema}"`
}

/** The SQL for everything that the store needs, for a migration tool. Safe to run repeatedly. */
export function schemaSql(name: string): string {
  const schema = toQuotedName(name)
  return `-- once-per-key, revision ${REVISION}
DO $schema$ BEGIN
  IF pg_catalog.array_position(pg_catalog.current_schemas(false), 'pg_catalog') OPERATOR(pg_catalog.>) 1 THEN
    RAISE EXCEPTION 'once-per-key: search_path has a schema before pg_catalog, whose functions would be taken for those of Postgres: SET search_path = public';
  END IF;
  IF current_setting('server_version_num')::integer < 140000 THEN
    RAISE EXCEPTION 'once-per-key needs Postgres 14 or later';
  END IF;
  IF to_regnamespace('${schema}') IS NULL THEN
    CREATE SCHEMA ${schema};
  END IF;
END $schema$;
${recordsTableSql(schema)}${stepsTableSql(schema)}${sweepsTableSql(schema)}${buildCommandsSql(schema)}${buildWalksSql(schema)}${buildTransactionsSql(schema)}${buildUnclaimedSql(schema)}
CREATE OR REPLACE FUNCTION ${schema}.revision_v1(OUT revision text)
LANGUAGE sql IMMUTABLE ${BY_POSTGRES} AS $body$ SELECT '${REVISION}' $body$;
`
}

/**
 * The same as one statement in one transaction: if several processes start together, one runs it and the others wait.
 */
export function migrationSql(name: string): string {
  const schema = toQuotedName(name)
  return `DO $migration$
DECLARE installed integer := 0;
BEGIN
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  PERFORM pg_advisory_xact_lock(hashtextextended('once-per-key ${schema}', 0));
  IF to_regprocedure('${schema}.revision_v1()') IS NOT NULL THEN
    EXECUTE 'SELECT revision::integer FROM ${schema}.revision_v1()' INTO installed;
  END IF;
  IF installed < ${REVISION} THEN
    EXECUTE $sql$${schemaSql(name)}$sql$;
  END IF;
END
$migration$`
}

/**
 * Half of each page stays free and only `id` is indexed, so updates stay within their page and no index grows. The checks are those of
 * format 1, and apply to every writer.
 */
function recordsTableSql(schema: string): string {
  return `
CREATE TABLE IF NOT EXISTS ${schema}.records (
  id bytea PRIMARY KEY,
  name text NOT NULL,
  format smallint NOT NULL,
  state text NOT NULL,
  token text NOT NULL,
  fingerprint text,
  attempt bigint NOT NULL,
  uncertain boolean NOT NULL,
  lease_until timestamptz,
  expires_at timestamptz NOT NULL,
  status integer,
  head text,
  body bytea,
  CONSTRAINT records_format_1 CHECK (format <> ${FORMAT} OR CASE state
    WHEN 'in-flight' THEN fingerprint IS NOT NULL AND lease_until IS NOT NULL
      AND status IS NULL AND head IS NULL AND body IS NULL
    WHEN 'completed' THEN fingerprint IS NOT NULL AND NOT uncertain AND lease_until IS NULL
      AND status IS NOT NULL AND head IS NOT NULL
    WHEN 'failed' THEN (fingerprint IS NOT NULL) = uncertain AND lease_until IS NULL
      AND status IS NULL AND head IS NULL AND body IS NULL
    ELSE false
  END)
) WITH (fillfactor = 50);

COMMENT ON TABLE ${schema}.records IS
  'once-per-key: one row per record. Only the functions of this schema change it. id is sha256(name); name is the storage key; in every format, a row stops being a record once expires_at has passed.';
COMMENT ON COLUMN ${schema}.records.head IS 'The reason phrase and the headers of the answer, as JSON.';
COMMENT ON COLUMN ${schema}.records.body IS 'NULL with state completed: the answer was not kept.';
`
}

/** A row for each step, gone with its record. */
function stepsTableSql(schema: string): string {
  return `
CREATE TABLE IF NOT EXISTS ${schema}.steps (
  record bytea NOT NULL,
  label text NOT NULL,
  position bigint GENERATED ALWAYS AS IDENTITY,
  step_order bigint NOT NULL,
  state text NOT NULL CHECK (state IN ('begun', 'done', 'undone', 'rerun')),
  result bytea,
  PRIMARY KEY (record, label)
);

COMMENT ON TABLE ${schema}.steps IS
  'once-per-key: one row per step of an operation, beside its record and gone with it. label is JSON; the row without one is an operator''s mark.';
CREATE OR REPLACE FUNCTION ${schema}.steps_gone_v1() RETURNS trigger LANGUAGE plpgsql ${BY_INDEX} AS $body$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    DELETE FROM ${schema}.steps;
  ELSE
    DELETE FROM ${schema}.steps s WHERE s.record = ANY (ARRAY(SELECT id FROM gone));
  END IF;
  RETURN NULL;
END
$body$;

DO $triggers$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = '${schema}.records'::regclass AND tgname = 'steps_emptied') THEN
    CREATE TRIGGER steps_gone AFTER DELETE ON ${schema}.records REFERENCING OLD TABLE AS gone
      FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.steps_gone_v1();
    CREATE TRIGGER steps_emptied AFTER TRUNCATE ON ${schema}.records
      FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.steps_gone_v1();
  END IF;
END $triggers$;

COMMENT ON COLUMN ${schema}.steps.result IS 'NULL with state done: the result was not kept.';
`
}

/** One row: the progress of the sweep. */
function sweepsTableSql(schema: string): string {
  return `
CREATE TABLE IF NOT EXISTS ${schema}.sweeps (
  id smallint PRIMARY KEY CHECK (id = 1),
  next_block bigint NOT NULL,
  due_at timestamptz NOT NULL
) WITH (fillfactor = 50);

INSERT INTO ${schema}.sweeps (id, next_block, due_at) VALUES (1, 0, '-infinity') ON CONFLICT DO NOTHING;
`
}
