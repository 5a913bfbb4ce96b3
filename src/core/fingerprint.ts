import { createHash, type Hash, hash } from 'node:crypto'
import { IdempotencyError, kindOf } from './errors.js'

/** A fingerprint of a deeper body would exhaust the stack of whoever walks it. */
export const MAX_BODY_DEPTH = 1_000

/** Frozen within a major version: records made before an upgrade must still match. Held by golden files. */
const FORMAT = 'v1.'

/** What `fingerprintOf` answers for a body nested deeper than `MAX_BODY_DEPTH`. */
export const TOO_DEEP = Symbol('too deep')

/**
 * What makes two requests the same: SHA-256 over method, path, query and content. JSON counts by value, with members in
 * any order; Buffers and strings count by their bytes.
 *
 * @throws IdempotencyError `fingerprint_required` for a value that has no form to compare, such as a Map.
 */
export function fingerprintOf(
  method: string,
  target: string,
  content: unknown,
  ignoredMember?: string,
): string | typeof TOO_DEEP {
  // The length delimits the target, so no two requests share a prefix.
  const prefix = `${method} ${target.length} ${target}\n`
  // Half a surrogate pair has no bytes in UTF-8: such a text counts as the JSON string that it is.
  if (content instanceof Uint8Array || (typeof content === 'string' && content.isWellFormed())) {
    return FORMAT + createHash('sha256').update(`${prefix}bytes\n`).update(content).digest('base64url')
  }
  const digest: Digest = { text: `${prefix}json\n`, hash: undefined }
  // A missing body is `undefined` in Express 5 and `{}` in Express 4: one request, one fingerprint.
  const isComplete = addCanonical(digest, content === undefined ? {} : content, 0, ignoredMember)
  return isComplete ? FORMAT + digested(digest) : TOO_DEEP
}

/**
 * Adds one text per value: members sorted by UTF-16 code unit as in RFC 8785, and none left out. `false`: nested too deep.
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
      throw notComparable(value)
  }
  if (value === null) {
    add(digest, 'null')
    return true
  }
  if (depth === MAX_BODY_DEPTH) return false

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
    if (Object.prototype.toString.call(value) !== '[object Object]') throw notComparable(value)
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

function notComparable(value: unknown): IdempotencyError {
  return new IdempotencyError(
    'fingerprint_required',
    `The request's body, or what \`fingerprint\` made of it, holds ${kindOf(value)}, which has no JSON form to compare. ` +
      'Give a `fingerprint(req)` that returns what makes two such requests the same, as a JSON value, a string or bytes.',
  )
}
