/**
 * The type of `tx`: the parameter of a client's `run`, or else what its `transaction` passes to the work; `Otherwise`: it is not two
 * functions, but a pool.
 */
export type TxOfFunctions<Given, Otherwise> = Given extends { run(tx: infer OfRun, statement: infer _): unknown }
  ? IsAny<OfRun> extends true
    ? OfWork<Given>
    : OfRun
  : Otherwise

type OfWork<Given> = Given extends { transaction(work: (tx: infer Tx) => Promise<void>, options?: infer _): unknown }
  ? Tx
  : never

/** Whether a type is `any`: a parameter without a declared type, which tells nothing. */
type IsAny<Type> = 0 extends 1 & Type ? true : false

/** Whether they are the two functions of a client. */
export function areFunctions(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { transaction, run } = value as { readonly transaction?: unknown; readonly run?: unknown }
  return typeof transaction === 'function' && typeof run === 'function'
}

/** The option `isolation`, in SQL. */
export const ISOLATION = {
  'read committed': 'READ COMMITTED',
  'repeatable read': 'REPEATABLE READ',
  serializable: 'SERIALIZABLE',
} as const

/** One object per statement: clients may cache templates by identity. */
export function templateOf(pieces: readonly string[]): TemplateStringsArray {
  return Object.freeze(Object.assign([...pieces], { raw: Object.freeze([...pieces]) }))
}

/** Clients return `{ rows }`, the rows alone, or a list that begins with the rows; `null`: something else. */
export function rowsIn(result: unknown): readonly Readonly<Record<string, unknown>>[] | null {
  const rows = isObject(result) && 'rows' in result ? result.rows : result
  const list = Array.isArray(rows) && Array.isArray(rows[0]) ? rows[0] : rows
  return Array.isArray(list) && list.every(isObject) ? list : null
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
