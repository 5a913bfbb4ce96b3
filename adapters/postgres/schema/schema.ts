import { commands } from './commands.js'
import { tables } from './table.js'
import { transactions } from './transactions.js'
import { unclaimed } from './unclaimed.js'
import { walks } from './walks.js'

/**
 * The revision of the SQL below, incremented with each change: `migrate` replaces functions of an earlier revision, and
 * leaves those of a later one. The version in a function's name is that of its parameters, so processes of an older and
 * a newer library can share a database during a deployment.
 */
export const REVISION = 3

/** The name as an SQL identifier. The option's rule guarantees that it needs no escaping. */
export function quoted(schema: string): string {
  return `"${schema}"`
}

/** The SQL for everything that the store needs, for a migration tool. Safe to run repeatedly. */
export function schemaSql(name: string): string {
  const schema = quoted(name)
  return `-- once-per-key, revision ${REVISION}
DO $schema$ BEGIN
  IF current_setting('server_version_num')::integer < 140000 THEN
    RAISE EXCEPTION 'once-per-key needs Postgres 14 or later';
  END IF;
  IF to_regnamespace('${schema}') IS NULL THEN
    CREATE SCHEMA ${schema};
  END IF;
END $schema$;
${tables(schema)}${commands(schema)}${walks(schema)}${transactions(schema)}${unclaimed(schema)}
CREATE OR REPLACE FUNCTION ${schema}.revision_v1(OUT revision text)
LANGUAGE sql IMMUTABLE AS $body$ SELECT '${REVISION}' $body$;
`
}

/**
 * The same as one statement in one transaction: if several processes start together, one runs it and the others wait.
 */
export function migrationSql(name: string): string {
  const schema = quoted(name)
  return `DO $migration$
DECLARE installed integer := 0;
BEGIN
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
