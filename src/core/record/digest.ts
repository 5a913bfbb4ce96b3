import { createHash, type Hash, hash } from 'node:crypto'
import { IdempotencyError, kindOf } from '../errors.js'

/** The traversal is recursive: a deeper value would overflow the stack. */
export const MAX_DEPTH = 1_000

/** Frozen within a major version: records made before an upgrade must still match. Held by golden files. */
const FORMAT = 'v1.'

/** Why a value has no digest. */
export type Undigestible =
  /** Nested deeper than `MAX_DEPTH`. */
  | { readonly fault: 'too_deep' }
  /** It contains something without a JSON form, such as a Map. `seen` is its kind, for messages. */
  | { readonly fault: 'not_comparable'; readonly seen: string }

/**
 * The fingerprint of a value, which makes two operations the same in an operation engine's `claim`. SHA-256, as text.
 * JSON counts by value, with members in any order; bytes and strings count by their bytes (so a string equals its UTF-8
 * bytes). Numbers count as JavaScript numbers (1, 1.0 and 1n are equal; 1e400 is `Infinity`, a value of its own); an
 * object with `toJSON`, such as a Date, counts as its result. A member with the value `undefined` differs from an
 * absent one.
 *
 * The same value has the same fingerprint in every version with the same major number.
 *
 * @example
 * const fingerprint = fingerprintOf({ invoice: 'in_7', amount: 100 })
 * const claimed = await engine.claim({ namespace: 'invoices', scope: 'acme', key: 'in_7', fingerprint })
 *
 * @throws IdempotencyError `value_not_comparable` for `undefined`, a function, a symbol, or an object without a JSON
 * form, such as a Map, anywhere in the value; `value_too_deep` beyond 1,000 levels. Nothing ran and nothing was stored.
 * An error that `toJSON` throws is rethrown.
 */
export function fingerprintOf(value: unknown): string {
  const digest: string | Undigestible =
    value === undefined ? { fault: 'not_comparable', seen: 'undefined' } : digestOf('', value)
  if (typeof digest === 'string') return digest
  if (digest.fault === 'too_deep') {
    throw new IdempotencyError(
      'value_too_deep',
      `The value is nested deeper than ${MAX_DEPTH} levels. Use a part of it, its bytes, or its JSON text.`,
    )
  }
  throw new IdempotencyError(
    'value_not_comparable',
    `The value is, or contains, ${digest.seen}, which has no JSON form to compare. Pass what makes two such operations the same, as ` +
      'a JSON value, a string or bytes.',
  )
}

/**
 * The digest of a value after a prefix, which says what the value belongs to; no prefix may begin with another one. A
 * top-level member named `ignoredMember` does not count.
 */
export function digestOf(prefix: string, value: unknown, ignoredMember?: string): string | Undigestible {
  // A lone surrogate has no UTF-8 form: such a string is hashed as JSON.
  if (value instanceof Uint8Array || (typeof value === 'string' && value.isWellFormed())) {
    return FORMAT + createHash('sha256').update(`${prefix}bytes\n`).update(value).digest('base64url')
  }
  const digest: Digest = { text: `${prefix}json\n`, hash: undefined, fault: undefined }
  return addCanonical(digest, value, 0, ignoredMember)
    ? FORMAT + digested(digest)
    : (digest.fault ?? { fault: 'too_deep' })
}

/**
 * Adds one text per value: members sorted by UTF-16 code unit as in RFC 8785, and none left out. Returns `false` if
 * there is no digest. Unlike RFC 8785 it accepts every value that a parser can make: 1e400 is `Infinity`, and lone
 * surrogates stay distinct, because JSON.stringify escapes them.
 */
function addCanonical(digest: Digest, value: unknown, depth: number, ignoredMember?: string): boolean {
  switch (typeof value) {
    case 'string':
      add(digest, JSON.stringify(value))
      return true
    case 'number':
    case 'boolean':
    case 'bigint':
    case 'undefined':
      add(digest, Object.is(value, -0) ? '0' : String(value))
      return true
    case 'object':
      break
    default:
      return notComparable(digest, value)
  }
  if (value === null) {
    add(digest, 'null')
    return true
  }
  if (depth === MAX_DEPTH) return false

  if (Array.isArray(value)) {
    add(digest, '[')
    for (let i = 0; i < value.length; i++) {
      if (i > 0) add(digest, ',')
      if (!addCanonical(digest, value[i], depth + 1)) return false
    }
    add(digest, ']')
    return true
  }

  if (!isPlain(value)) {
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      return addCanonical(digest, value.toJSON(), depth + 1, ignoredMember)
    }
    if (Object.prototype.toString.call(value) !== '[object Object]') return notComparable(digest, value)
  }
  const names = Object.keys(value)
  sort(names)
  let separator = '{'
  for (const name of names) {
    if (name === ignoredMember) continue
    add(digest, separator + quoted(name))
    separator = ','
    if (!addCanonical(digest, (value as Record<string, unknown>)[name], depth + 1)) return false
  }
  add(digest, separator === '{' ? '{}' : '}')
  return true
}

/**
 * The text being hashed, in pieces: building the text of a large body as one string costs as much as the body itself.
 */
interface Digest {
  text: string
  /** Absent while everything fits into one piece. */
  hash: Hash | undefined
  /** Why there will be no digest. */
  fault: Undigestible | undefined
}

const PIECE_CHARACTERS = 16_384

function add(digest: Digest, text: string): void {
  digest.text += text
  if (digest.text.length < PIECE_CHARACTERS) return
  digest.hash ??= createHash('sha256')
  digest.hash.update(digest.text)
  digest.text = ''
}

function digested({ text, hash: begun }: Digest): string {
  return begun === undefined ? hash('sha256', text, 'base64url') : begun.update(text).digest('base64url')
}

/** A cache, since the same few names come with each request. Bounded, because clients choose names. */
const QUOTED_NAMES = new Map<string, string>()
const MOST_QUOTED_NAMES = 1_000
const LONGEST_QUOTED_NAME = 64

/** A member's name as JSON, with the colon. */
function quoted(name: string): string {
  const known = QUOTED_NAMES.get(name)
  if (known !== undefined) return known
  const text = `${JSON.stringify(name)}:`
  if (name.length <= LONGEST_QUOTED_NAME && QUOTED_NAMES.size < MOST_QUOTED_NAMES) QUOTED_NAMES.set(name, text)
  return text
}

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

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function notComparable(digest: Digest, value: unknown): false {
  digest.fault = { fault: 'not_comparable', seen: kindOf(value) }
  return false
}
