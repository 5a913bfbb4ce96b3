import { buildFormatCheckSql } from '../sql/record-columns.js'

/** The revision of the tables, incremented with each change. */
const REVISION = 1

/** The names of the tables, for SQL. The option's rule guarantees that they need no escaping. */
export function createTableNames(prefix: string) {
  return { records: `\`${prefix}records\``, sweeps: `\`${prefix}sweeps\`` } as const
}

/** As bytes: neither the database's character set nor the session's changes them. */
export function toBinarySql(text: string): string {
  return `_binary'${text}'`
}

/**
 * The table, and a row with the progress of the sweep. Texts are bytes, so that no character set or collation makes two keys equal.
 * Only `id` is indexed: an index on another column would be written by each command, and locked in an order of its own. The
 * checks are those of format 1, and apply to every writer.
 */
export function buildSchemaStatements(prefix: string): readonly string[] {
  const { records, sweeps } = createTableNames(prefix)
  return [
    `CREATE TABLE IF NOT EXISTS ${records} (
  id BINARY(32) NOT NULL,
  name BLOB NOT NULL,
  format SMALLINT NOT NULL,
  state VARBINARY(16) NOT NULL,
  token VARBINARY(255) NOT NULL,
  revision BIGINT NOT NULL,
  fingerprint VARBINARY(255),
  attempt BIGINT NOT NULL,
  uncertain TINYINT NOT NULL,
  lease_until BIGINT,
  expires_at BIGINT NOT NULL,
  status INT,
  head MEDIUMBLOB,
  body LONGBLOB,
  steps LONGBLOB,
  PRIMARY KEY (id),
  CONSTRAINT \`${prefix}format_1\` ${buildFormatCheckSql(toBinarySql)}
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC COMMENT = 'once-per-key, revision ${REVISION}: a row per record. id is sha2(name, 256); name is the storage key; times are in milliseconds since 1970; from expires_at on, there is no record.'`,
    `CREATE TABLE IF NOT EXISTS ${sweeps} (
  id TINYINT NOT NULL,
  next_id VARBINARY(32) NOT NULL,
  due_at BIGINT NOT NULL,
  PRIMARY KEY (id)
) ENGINE = InnoDB`,
    `INSERT IGNORE INTO ${sweeps} (id, next_id, due_at) VALUES (1, '', 0)`,
  ]
}

/** The SQL for everything that the store needs, for a migration tool. Safe to run repeatedly. */
export function schemaSql(prefix: string): string {
  const lines = buildSchemaStatements(prefix).map((each) => `${each};\n`)
  return `-- once-per-key, MySQL and MariaDB, revision ${REVISION}. Safe to run repeatedly.\n${lines.join('\n')}`
}
