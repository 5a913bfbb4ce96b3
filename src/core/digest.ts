import { createHash, type Hash, hash } from 'node:crypto'
import { IdempotencyError, kindOf } from './errors.js'

/** A deeper value would exhaust the stack of whoever walks it. */
export const MAX_DEPTH = 1_000

/** Frozen within a major version: records made before an upgrade must still match. Held by golden files. */
const FORMAT = 'v1.'

/** Why there is no digest of a value. */
export type Undigestible =
  /** Nested deeper than `MAX_DEPTH`. */
  | { readonly fault: 'too_deep' }
  /** It holds something without a JSON form, such as a Map: its kind, in words. */
  | { readonly fault: 'not_comparable'; readonly seen: string }

/**
 * The fingerprint of a value: what makes two operations the same, for `claim` of an operation engine. SHA-256, as text. JSON
 * counts by value, with members in any order; bytes and strings count by their bytes (so a string equals its bytes in UTF-8).
 * Numbers count as JavaScript has them (1, 1.0 and 1n are the same; 1e400 is `Infinity`, a value of its own), an object with
 * `toJSON`, such as a Date, as what that returns. A member that is `undefined` is not an absent one.
 *
 * The same value has the same fingerprint in every version with the same major number.
 *
 * @example
 * const fingerprint = fingerprintOf({ invoice: 'in_7', amount: 100 })
 * const claimed = await engine.claim({ namespace: 'invoices', scope: 'acme', key: 'in_7', fingerprint })
 *
 * @throws IdempotencyError `value_not_comparable` for `undefined`, a function, a symbol, or an object without a JSON form, such as
 * a Map, wherever it stands in the value; `value_too_deep` beyond 1,000 levels. Nothing ran and nothing was stored. What a
 * `toJSON` throws is passed on.
 */
export function fingerprintOf(value: unknown): string {
  const digest: string | Undigestible =
    value === undefined ? { fault: 'not_comparable', seen: 'undefined' } : digestOf('', value)
  if (typeof digest === 'string') return digest
  if (digest.fault === 'too_deep') {
    throw new IdempotencyError(
      'value_too_deep',
      `The value is nested deeper than ${MAX_DEPTH} levels. Take a part of it, its bytes, or its JSON text.`,
    )
  }
  throw new IdempotencyError(
    'value_not_comparable',
    `The value is, or holds, ${digest.seen}, which has no JSON form to compare. Give what makes two such operations the same as ` +
      'a JSON value, a string or bytes.',
  )
}

/**
 * The same behind a prefix, which says what the value belongs to: no two prefixes may begin alike. A top-level member named
 * `ignoredMember` does not count.
 */
export function digestOf(prefix: string, value: unknown, ignoredMember?: string): string | Undigestible {
  // Half a surrogate pair has no bytes in UTF-8: such a text counts as the JSON string that it is.
  if (value instanceof Uint8Array || (typeof value === 'string' && value.isWellFormed())) {
    return FORMAT + createHash('sha256').update(`${prefix}bytes\n`).update(value).digest('base64url')
  }
  const digest: Digest = { text: `${prefix}json\n`, hash: undefined, fault: undefined }
  return addCanonical(digest, value, 0, ignoredMember)
    ? FORMAT + digested(digest)
    : (digest.fault ?? { fault: 'too_deep' })
}

/**
 * Adds one text per value: members sorted by UTF-16 code unit as in RFC 8785, and none left out. `false`: there is no digest.
 * Unlike RFC 8785 it takes every value a parser can make: 1e400 is `Infinity`, and lone surrogates stay apart, since
 * JSON.stringify escapes them.
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

/** What is being hashed: piece by piece, since the text of a large body in one piece costs as much as making it. */
interface Digest {
  text: string
  /** Absent while all fits into one piece. */
  hash: Hash | undefined
  /** Why there will be none. */
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

/** The same few names come with each request. Bounded, since a client may make up more: those are quoted each time. */
const QUOTED_NAMES = new Map<string, string>()
const MOST_QUOTED_NAMES = 1_000
const LONGEST_QUOTED_NAME = 64

/** A member's name as it stands before its value. */
function quoted(name: string): string {
  const known = QUOTED_NAMES.get(name)
  if (known !== undefined) return known
  const text = `${JSON.stringify(name)}:`
  if (name.length <= LONGEST_QUOTED_NAME && QUOTED_NAMES.size < MOST_QUOTED_NAMES) QUOTED_NAMES.set(name, text)
  return text
}

/** In place; without the work space that the built-in sort takes for each object, where there are but a few names. */
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
