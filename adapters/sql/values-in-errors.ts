/**
 * What is shown of an error that the client has for a statement of the store. The statement holds keys and responses, and a server quotes
 * it from wherever it begins, so what stays is named here: codes, the database's own names, and words up to the first quotation.
 */

/** By which code decides, or finds the place in the database. */
const KEPT: ReadonlySet<unknown> = new Set([
  ...['name', 'code', 'errno', 'errcode', 'number', 'sqlState', 'originalCode', 'kind', 'severity', 'fatal'],
  ...['syscall', 'address', 'port', 'hostname', 'routine', 'clientVersion'],
  ...['schema', 'table', 'column', 'constraint', 'dataType'],
  ...['schema_name', 'table_name', 'column_name', 'constraint_name', 'type_name'],
])

const WORDS: ReadonlySet<unknown> = new Set(['message', 'sqlMessage', 'originalMessage', 'errstr'])

/** Where clients put other errors, or what they have read from them. */
const INSIDE: ReadonlySet<unknown> = new Set([
  ...['cause', 'parent', 'original', 'driverError', 'meta', 'driverAdapterError', 'errors'],
])

/** Codes and names are such words. */
const IS_NAME = /^[\w.:-]{1,100}$/

/**
 * The error, changed in place: its class and its causes stay, because the application recognises a deadlock by them. Another one with its
 * codes, where it cannot be changed.
 */
export function withoutValues(error: unknown): unknown {
  if (isData(error) && isCleared(error, new Set())) return error
  const { message, ...fields } = (isData(error) ? error : { message: error }) as Readonly<Record<string, unknown>>
  const named = ['code', 'errno', 'sqlState'].filter((name) => isKept(name, fields[name]))
  return Object.assign(
    new Error(untilQuotation(String(message))),
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
function isCleared(each: object, seen: Set<object>): boolean {
  if (seen.has(each)) return true
  seen.add(each)
  const names = new Set(Reflect.ownKeys(each))
  if (Array.isArray(each)) names.delete('length')
  else if ('message' in each) names.add('message')
  const shown = [...names].map((name) => [name, shownOf(each, name, seen)] as const)
  return shown.every(([name, value]) => isSet(each, name, value))
}

/** What is not shown is `undefined`. An object that cannot be cleared is not shown either. */
function shownOf(each: object, name: string | symbol, seen: Set<object>): unknown {
  const value = Object.getOwnPropertyDescriptor(each, name)?.get === undefined ? Reflect.get(each, name) : undefined
  if (name === 'stack') return stackOf(each)
  if (WORDS.has(name) && typeof value === 'string') return untilQuotation(value)
  if (isKept(name, value)) return value
  if (!INSIDE.has(name) && !Array.isArray(each)) return undefined
  return isData(value) && isCleared(value, seen) ? value : undefined
}

function isKept(name: string | symbol, value: unknown): boolean {
  if (!KEPT.has(name)) return false
  return typeof value === 'string' ? IS_NAME.test(value) : typeof value === 'number' || typeof value === 'boolean'
}

function isSet(each: object, name: string | symbol, value: unknown): boolean {
  const { enumerable = false } = Object.getOwnPropertyDescriptor(each, name) ?? {}
  return Reflect.defineProperty(each, name, { value, enumerable, writable: true, configurable: true })
}

/** The frames behind the words, which V8 repeats there; none where they cannot be told apart. */
function stackOf(each: object): string {
  const { name, message, sqlMessage, stack } = each as Readonly<Record<string, unknown>>
  const head = `${isKept('name', name) ? name : 'Error'}: ${untilQuotation(String(message))}`
  const words = [message, sqlMessage].find((said) => typeof said === 'string' && String(stack).includes(said))
  const at = String(stack).lastIndexOf(String(words ?? '')) + String(words ?? '').length
  const frames = words === undefined ? '' : String(stack).slice(at)
  return /^(\n {4}at [^\n]*)+$/.test(frames) ? head + frames : head
}

/**
 * The words up to the first quotation mark of any language. No word of a server's own is as long as the longest here, and an apostrophe
 * stands only in `n't` and `'s`.
 */
export function untilQuotation(words: string): string {
  const end = words.search(QUOTATION)
  return end === -1 ? words : `${words.slice(0, end).trimEnd()} …`
}

const QUOTATION = /(?<!n(?='t\b)|\p{L}(?='s\b))'|["`´‘’‚“”„«»‹›「」『』\\\n]|\b0x[0-9a-f]|\S{80,}/iu
