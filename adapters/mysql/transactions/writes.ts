import { MySqlStoreError } from '../errors.js'
import { createStatement } from '../statement.js'

const COUNTERS = [
  ...['Com_insert', 'Com_insert_select', 'Com_update', 'Com_update_multi', 'Com_delete', 'Com_delete_multi'],
  ...['Com_replace', 'Com_replace_select', 'Com_load', 'Com_call_procedure'],
]

/** A statement that sends no rows may have written: an UPDATE that matches none counts too. Every user may ask. */
export const readWrites = createStatement(
  `SHOW SESSION STATUS WHERE Variable_name IN (${COUNTERS.map((name) => `'${name}'`).join(', ')})`,
)

/**
 * How many statements that write the session has been sent.
 *
 * @throws MySqlStoreError `database_unsuitable`: the session leaves rows out, and no SHOW has a LIMIT of its own.
 */
export function countWrites(rows: readonly Readonly<Record<string, unknown>>[]): number {
  if (rows.length >= COUNTERS.length) return rows.reduce((sum, row) => sum + Number(readVariable(row)), 0)
  throw new MySqlStoreError(
    'database_unsuitable',
    'The session of the transaction leaves rows out: leave `sql_select_limit` at its default, at least when the work ends.',
  )
}

export function readVariable(row: Readonly<Record<string, unknown>>): string {
  return String(row.Value ?? row.VARIABLE_VALUE)
}
