// What the errors of the three databases have in common: where clients put them, and what is shown of them.

/** By which of its codes the database says each of a store's, separated by blanks. */
export type DatabaseErrorCodes<Code extends string> = Readonly<Partial<Record<Code, string>>>

/** The code that stands for the first of the database's own that is known. */
export function findErrorCode<Code extends string>(
  codes: DatabaseErrorCodes<Code>,
  ...own: readonly (string | number)[]
): Code | undefined {
  const names = Object.keys(codes) as Code[]
  return own
    .map((each) => names.find((code) => codes[code]?.split(' ').includes(String(each))))
    .find((code) => code !== undefined)
}

/** Why a run may not complete a record in a transaction. */
export const OWNERSHIP_ERRORS = {
  record_absent:
    'There is no record of this run in the database: its retention has ended, or the transaction uses another database than ' +
    'the store.',
  record_taken: 'This run lost its lease, and another attempt owns the record.',
  record_ended: 'This run has already ended.',
}

/** For a transaction that was opened for a run. */
export const NOTHING_WRITTEN_INSIDE =
  'Nothing was written in this transaction, so it was rolled back. Probably the writes went over another connection, and stay: use ' +
  'the `tx` that the work received. Or there was nothing to write, such as an UPDATE that matched no row: then give `transaction` the ' +
  'option `allowEmpty: true`.'

// --- where clients put them

/**
 * Where clients put the database's own error (Sequelize: `parent`, TypeORM: `driverError`, Prisma: `meta`, others: `cause`), or what they
 * have read from it.
 */
const INSIDE: readonly string[] = ['cause', 'parent', 'original', 'driverError', 'meta', 'driverAdapterError']

export type ErrorFields = Readonly<Record<string, unknown>>

/** From the outermost to the innermost error; of an AggregateError (several addresses), only the first error. */
export function listCauses(error: unknown): ErrorFields[] {
  const found: ErrorFields[] = []
  const waiting = [error]
  while (waiting.length > 0 && found.length < 10) {
    const next = waiting.shift()
    if (typeof next !== 'object' || next === null || found.includes(next as ErrorFields)) continue
    const fields = next as ErrorFields
    found.push(fields)
    waiting.push(...INSIDE.map((name) => fields[name]), Array.isArray(fields.errors) ? fields.errors[0] : undefined)
  }
  return found
}

/** What the client, or the database behind it, said. */
export function findClientMessage(error: unknown): string {
  const innermost = listCauses(error).findLast(({ message }) => typeof message === 'string' && message !== '')
  return innermost === undefined ? 'nothing' : String(innermost.message)
}

/** Whether the client sends nothing in the transaction any more: Sequelize's words, where the work has called `commit` or `rollback`. */
export function isEndedByWork(error: unknown): boolean {
  return /has been called on this transaction/.test(findClientMessage(error))
}

// --- what is shown of an error that the client has for a statement of the store

// The statement holds keys and responses, and a server quotes it from wherever it begins. So what stays is named here: codes, the database's
// own names, and words up to the first quotation.

/** By which code decides, or finds the place in the database. */
const KEPT: ReadonlySet<unknown> = new Set([
  ...['name', 'code', 'errno', 'errcode', 'number', 'sqlState', 'originalCode', 'kind', 'severity', 'fatal'],
  ...['syscall', 'address', 'port', 'hostname', 'routine', 'clientVersion'],
  ...['schema', 'table', 'column', 'constraint', 'dataType'],
  ...['schema_name', 'table_name', 'column_name', 'constraint_name', 'type_name'],
])

const WORDS: ReadonlySet<unknown> = new Set(['message', 'sqlMessage', 'originalMessage', 'errstr'])

/** Codes and names are such words. */
const IS_NAME = /^[\w.:-]{1,100}$/

/**
 * The error, changed in place: its class and its causes stay, because the application recognises a deadlock by them. Another one with its
 * codes, where it cannot be changed.
 */
export function redactErrorValues(error: unknown): unknown {
  if (isData(error) && tryRedactInPlace(error, new Set())) return error
  const { message, ...fields } = (isData(error) ? error : { message: error }) as Readonly<Record<string, unknown>>
  const named = ['code', 'errno', 'sqlState'].filter((name) => isKept(name, fields[name]))
  return Object.assign(
    new Error(cutAtQuotation(String(message))),
    Object.fromEntries(named.map((name) => [name, fields[name]])),
  )
}

/** Errors, and objects and lists of data: not a client, or what else hangs on an error and is used by others. */
function isData(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return value instanceof Error || Array.isArray(value) || prototype === null || prototype === Object.prototype
}

/** Whether it could be cleared, and all that is in it. */
function tryRedactInPlace(each: object, seen: Set<object>): boolean {
  if (seen.has(each)) return true
  seen.add(each)
  const names = new Set(Reflect.ownKeys(each))
  if (Array.isArray(each)) names.delete('length')
  else if ('message' in each) names.add('message')
  const shown = [...names].map((name) => [name, redactProperty(each, name, seen)] as const)
  return shown.every(([name, value]) => trySetProperty(each, name, value))
}

/** What is not shown is `undefined`. An object that cannot be cleared is not shown either. */
function redactProperty(each: object, name: string | symbol, seen: Set<object>): unknown {
  const value = Object.getOwnPropertyDescriptor(each, name)?.get === undefined ? Reflect.get(each, name) : undefined
  if (name === 'stack') return buildRedactedStack(each)
  if (WORDS.has(name) && typeof value === 'string') return cutAtQuotation(value)
  if (isKept(name, value)) return value
  if (!isInside(name) && !Array.isArray(each)) return undefined
  return isData(value) && tryRedactInPlace(value, seen) ? value : undefined
}

function isInside(name: string | symbol): boolean {
  return name === 'errors' || INSIDE.includes(String(name))
}

function isKept(name: string | symbol, value: unknown): boolean {
  if (!KEPT.has(name)) return false
  return typeof value === 'string' ? IS_NAME.test(value) : typeof value === 'number' || typeof value === 'boolean'
}

function trySetProperty(each: object, name: string | symbol, value: unknown): boolean {
  const { enumerable = false } = Object.getOwnPropertyDescriptor(each, name) ?? {}
  return Reflect.defineProperty(each, name, { value, enumerable, writable: true, configurable: true })
}

/** The frames behind the words, which V8 repeats there; none where they cannot be told apart. */
function buildRedactedStack(each: object): string {
  const { name, message, sqlMessage, stack } = each as Readonly<Record<string, unknown>>
  const head = `${isKept('name', name) ? name : 'Error'}: ${cutAtQuotation(String(message))}`
  const words = [message, sqlMessage].find((said) => typeof said === 'string' && String(stack).includes(said))
  const at = String(stack).lastIndexOf(String(words ?? '')) + String(words ?? '').length
  const frames = words === undefined ? '' : String(stack).slice(at)
  return /^(\n {4}at [^\n]*)+$/.test(frames) ? head + frames : head
}

/**
 * The words up to the first quotation mark of any language. No word of a server's own is as long as the longest here, and an apostrophe
 * stands only in `n't` and `'s`.
 */
function cutAtQuotation(words: string): string {
  const end = words.search(QUOTATION)
  return end === -1 ? words : `${words.slice(0, end).trimEnd()} …`
}

const QUOTATION = /(?<!n(?='t\b)|\p{L}(?='s\b))'|["`´‘’‚“”„«»‹›「」『』\\\n]|\b0x[0-9a-f]|\S{80,}/iu
