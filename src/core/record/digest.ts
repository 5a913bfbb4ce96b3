import { Buffer } from 'node:buffer'
import { createHash, type Hash, hash } from 'node:crypto'
import { IdempotencyError, kindOf } from '../errors.js'
import { ExactDecimal, isPlain } from '../json.js'

/** The traversal is recursive: a deeper value would overflow the stack. */
export const MAX_DEPTH = 1_000

/** Frozen within a major version: records made before an upgrade must still match. Held by golden files. */
const FORMAT = 'v1.'

type Undigestible =
  | { readonly fault: 'too_deep' }
  /** It contains something without a JSON form, such as a Map or an object of a class. `seen` is its kind, for messages. */
  | { readonly fault: 'not_comparable'; readonly seen: string }

/**
 * The fingerprint of a value, which makes two operations the same in an operation engine's `claim`. SHA-256, as text.
 * JSON counts by value, with members in any order; bytes and strings count by their bytes (so a string equals its UTF-8
 * bytes). Numbers count as JavaScript numbers (1, 1.0 and 1n are equal; 1e400 is `Infinity`, a value of its own); an
 * object with `toJSON`, such as a Date, counts as its result. A member with the value `undefined` differs from an
 * absent one. Only arrays and plain objects count by their members: an object of another class may have private ones.
 *
 * The same value has the same fingerprint in every version with the same major number.
 *
 * @example
 * const fingerprint = fingerprintOf({ invoice: 'in_7', amount: 100 })
 * const claimed = await engine.claim({ namespace: 'invoices', scope: 'acme', key: 'in_7', fingerprint })
 *
 * @throws IdempotencyError `value_not_comparable` for `undefined`, a function, a symbol, or an object without a JSON
 * form, such as a Map or an object of a class, anywhere in the value; `value_too_deep` beyond 1,000 levels. Nothing ran and nothing was stored.
 * An error that `toJSON` throws is rethrown.
 */
export function fingerprintOf(value: unknown): string {
  const digest: string | Undigestible =
    value === undefined ? { fault: 'not_comparable', seen: 'undefined' } : digestOf(value)
  if (typeof digest === 'string') return digest
  if (digest.fault === 'too_deep') {
    throw new IdempotencyError(
      'value_too_deep',
      `The value is nested deeper than ${MAX_DEPTH} levels. Use a part of it, its bytes, or its JSON text.`,
    )
  }
  throw new IdempotencyError(
    'value_not_comparable',
    `The value is, or contains, ${digest.seen}, which has no JSON form to compare. ${ONLY_PLAIN} Pass what makes two such ` +
      'operations the same, as a JSON value, a string or bytes.',
  )
}

/** For messages about what is not comparable. */
export const ONLY_PLAIN =
  'Only arrays, plain objects and what has `toJSON` are compared: others may hold what nobody sees.'

/**
 * The digest of a value, after what it belongs to: an operation's kind (a request's method) and its target. A top-level member
 * named `ignoredMember` does not count.
 */
export function digestOf(value: unknown, ignoredMember?: string, kind?: string, target = ''): string | Undigestible {
  // A lone surrogate has no UTF-8 form: such a string is hashed as JSON.
  if (value instanceof Uint8Array || (typeof value === 'string' && value.isWellFormed())) {
    const prefix = kind === undefined ? '' : `${kind} ${target.length} ${target}\n`
    return FORMAT + createHash('sha256').update(`${prefix}bytes\n`).update(value).digest('base64url')
  }
  const digest = unused ?? new Digest()
  unused = undefined // Until it is free again: a `toJSON` may ask for a fingerprint.
  try {
    if (kind !== undefined) addPrefix(digest, kind, target)
    digest.add('json\n')
    return addCanonical(digest, value, 0, ignoredMember) ? FORMAT + digest.end() : (digest.fault ?? TOO_DEEP)
  } finally {
    digest.reset()
    unused = digest
  }
}

/** The length marks the end of the target, so no prefix begins with another one. */
function addPrefix(digest: Digest, kind: string, target: string): void {
  digest.add(kind)
  digest.add(' ')
  digest.add(String(target.length))
  digest.add(' ')
  digest.add(target)
  digest.add('\n')
}

const TOO_DEEP: Undigestible = { fault: 'too_deep' }

/**
 * Adds one text per value: members sorted by UTF-16 code unit as in RFC 8785, and none left out. Returns `false` if
 * there is no digest. Unlike RFC 8785 it accepts every value that a parser can make: 1e400 is `Infinity`, and lone
 * surrogates stay distinct, because JSON.stringify escapes them.
 */
function addCanonical(digest: Digest, value: unknown, depth: number, ignoredMember?: string): boolean {
  switch (typeof value) {
    case 'string':
      digest.addQuoted(value)
      return true
    case 'number':
    case 'boolean':
    case 'bigint':
    case 'undefined':
      digest.add(Object.is(value, -0) ? '0' : String(value))
      return true
    case 'object':
      break
    default:
      return notComparable(digest, value)
  }
  if (value === null) {
    digest.add('null')
    return true
  }
  if (value instanceof ExactDecimal) {
    digest.add(value.text)
    return true
  }
  if (depth === MAX_DEPTH) return false

  if (!isPlain(value)) {
    return 'toJSON' in value && typeof value.toJSON === 'function'
      ? addCanonical(digest, value.toJSON(), depth + 1, ignoredMember)
      : notComparable(digest, value)
  }
  return Array.isArray(value)
    ? addElements(digest, value, depth)
    : addMembers(digest, value as Record<string, unknown>, depth, ignoredMember)
}

function addElements(digest: Digest, value: readonly unknown[], depth: number): boolean {
  digest.add('[')
  for (let i = 0; i < value.length; i++) {
    if (i > 0) digest.add(',')
    if (!addCanonical(digest, value[i], depth + 1)) return false
  }
  digest.add(']')
  return true
}

function addMembers(digest: Digest, value: Record<string, unknown>, depth: number, ignoredMember?: string): boolean {
  const names = Object.keys(value)
  sort(names)
  let separator = '{'
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string
    if (name === ignoredMember) continue
    digest.add(separator)
    digest.addQuoted(name)
    digest.add(':')
    separator = ','
    if (!addCanonical(digest, value[name], depth + 1)) return false
  }
  digest.add(separator === '{' ? '{}' : '}')
  return true
}

const PIECE_BYTES = 16_384

/**
 * What is hashed, as bytes in pieces: to build the text first would cost several times its size. One is enough, since it
 * is used synchronously.
 */
class Digest {
  readonly #bytes = Buffer.allocUnsafe(PIECE_BYTES)
  #length = 0
  /** Absent while everything fits into one piece. */
  #hash: Hash | undefined = undefined
  fault: Undigestible | undefined = undefined

  add(text: string): void {
    const from = this.#room(text.length)
    if (from < 0 || !this.#addAscii(text, from, false)) this.#addAny(text)
  }

  /** As JSON. */
  addQuoted(text: string): void {
    const from = this.#room(text.length + 2)
    if (from < 0 || !this.#addAscii(text, from + 1, true)) {
      this.#addAny(JSON.stringify(text))
      return
    }
    this.#bytes[from] = QUOTE
    this.#bytes[this.#length++] = QUOTE
  }

  /** Where so many bytes have room; -1: nowhere. */
  #room(length: number): number {
    if (length > PIECE_BYTES) return -1
    if (this.#length + length > PIECE_BYTES) this.#flush()
    return this.#length
  }

  /** Whether it has only characters of one byte and, if it is to be quoted, that JSON does not escape. Otherwise adds nothing. */
  #addAscii(text: string, from: number, isQuoted: boolean): boolean {
    const bytes = this.#bytes
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code > 0x7f || (isQuoted && (code < 0x20 || code === QUOTE || code === BACKSLASH))) return false
      bytes[from + i] = code
    }
    this.#length = from + text.length
    return true
  }

  /** As UTF-8, which takes at most three bytes for a UTF-16 code unit. */
  #addAny(text: string): void {
    const from = this.#room(3 * text.length)
    if (from < 0) this.#flush().update(text)
    else this.#length += this.#bytes.write(text, from)
  }

  #flush(): Hash {
    this.#hash ??= createHash('sha256')
    this.#hash.update(this.#bytes.subarray(0, this.#length))
    this.#length = 0
    return this.#hash
  }

  end(): string {
    const rest = this.#bytes.subarray(0, this.#length)
    return this.#hash === undefined ? hash('sha256', rest, 'base64url') : this.#hash.update(rest).digest('base64url')
  }

  reset(): void {
    this.#length = 0
    this.#hash = undefined
    this.fault = undefined
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

let unused: Digest | undefined

/**
 * Sorts in place. For few names, insertion sort needs no work space, which the built-in sort allocates for each object.
 */
function sort(names: string[]): void {
  if (names.length > 16) names.sort()
  else {
    for (let i = 1; i < names.length; i++) {
      const name = names[i] as string
      let j = i
      for (; j > 0 && (names[j - 1] as string) > name; j--) names[j] = names[j - 1] as string
      names[j] = name
    }
  }
}

function notComparable(digest: Digest, value: unknown): false {
  digest.fault = { fault: 'not_comparable', seen: kindOf(value) }
  return false
}
