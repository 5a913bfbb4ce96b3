import { commands } from './commands.js'
import { tables } from './table.js'
import { transactions } from './transactions.js'
import { walks } from './walks.js'

/**
 * What the text below is, in a number that grows with each change of it: `migrate` replaces functions of an earlier
 * revision, and leaves those of a later one. The functions' own names carry the version of their parameters, so that
 * processes of an older and a newer library share a database during a deployment.
 */
export const REVISION = 1

/** A name as SQL takes it; the rule of the option makes sure that there is nothing to escape. */
export function quoted(schema: string): string {
  return `"${schema}"`
}

/** Everything that the store needs, as a text for a migration tool. Safe to run again. */
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
${tables(schema)}${commands(schema)}${walks(schema)}${transactions(schema)}
CREATE OR REPLACE FUNCTION ${schema}.revision_v1(OUT revision text)
LANGUAGE sql IMMUTABLE AS $body$ SELECT '${REVISION}' $body$;
`
}

/** The same as one statement, in one transaction: of processes that start together, one does it, and the others wait. */
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
