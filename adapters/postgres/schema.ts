import { buildFormatCheckSql } from '../sql/record-columns.js'
import { toQuotedName } from './sql.js'

/** The revision of the tables, incremented with each change. */
export const REVISION = 1

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
${recordsTableSql(schema)}
CREATE TABLE IF NOT EXISTS ${schema}.sweeps (
  id smallint PRIMARY KEY CHECK (id = 1),
  next_block bigint NOT NULL,
  due_at bigint NOT NULL
) WITH (fillfactor = 50);

COMMENT ON TABLE ${schema}.sweeps IS 'once-per-key, revision ${REVISION}: one row, the progress of the sweep.';
`
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
  revision bigint NOT NULL,
  state text NOT NULL,
  token text NOT NULL,
  fingerprint text,
  attempt bigint NOT NULL,
  uncertain smallint NOT NULL,
  lease_until bigint,
  expires_at bigint NOT NULL,
  status integer,
  head text,
  body bytea,
  steps bytea,
  CONSTRAINT records_format_1 ${buildFormatCheckSql()}
) WITH (fillfactor = 50);

COMMENT ON TABLE ${schema}.records IS
  'once-per-key: one row per record. id is sha256(name); name is the storage key; times are in milliseconds since 1970; in every format, a row stops being a record once expires_at has passed.';
COMMENT ON COLUMN ${schema}.records.head IS 'The reason phrase and the headers of the answer, as JSON.';
COMMENT ON COLUMN ${schema}.records.body IS 'NULL with state completed: the answer was not kept.';
COMMENT ON COLUMN ${schema}.records.steps IS 'The recorded steps of the operation, as JSON.';
`
}

/** Whether the tables exist, of this revision or a later one. The second one is created last. */
export function selectInstalledSql(name: string): string {
  return `SELECT CASE WHEN ${buildInstalledConditionSql(toQuotedName(name))} THEN '1' END AS installed`
}

function buildInstalledConditionSql(schema: string): string {
  const comment = `pg_catalog.obj_description(pg_catalog.to_regclass('${schema}.sweeps'), 'pg_class')`
  return `pg_catalog.substring(${comment}, 'revision ([0-9]+)')::integer OPERATOR(pg_catalog.>=) ${REVISION}`
}

/** The same as one statement in one transaction: if several processes start together, one creates the tables and the others wait. */
export function migrationSql(name: string): string {
  const schema = toQuotedName(name)
  return `DO $migration$ BEGIN
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  PERFORM pg_advisory_xact_lock(hashtextextended('once-per-key ${schema}', 0));
  IF ${buildInstalledConditionSql(schema)} IS NOT TRUE THEN
    EXECUTE $sql$${schemaSql(name)}$sql$;
  END IF;
END $migration$`
}
