import { createHash, hash } from 'node:crypto'
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
  // A missing body is `undefined` in Express 5 and `{}` in Express 4: one request, one fingerprint.
  const text = canonical(content === undefined ? {} : content, 0, ignoredMember)
  return text === null ? TOO_DEEP : FORMAT + hash('sha256', `${prefix}json\n${text}`, 'base64url')
}

/**
 * One text per value: members sorted by UTF-16 code unit as in RFC 8785, and none left out. `null`: nested too deep.
 * Unlike RFC 8785 it takes every value a parser can make: 1e400 is `Infinity`, and lone surrogates stay apart, since
 * JSON.stringify escapes them.
 */
function canonical(value: unknown, depth: number, ignoredMember?: string): string | null {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
    case 'boolean':
    case 'bigint':
    case 'undefined':
      return Object.is(value, -0) ? '0' : String(value)
    case 'object':
      break
    default:
      throw notComparable(value)
  }
  if (value === null) return 'null'
  if (depth === MAX_BODY_DEPTH) return null

  if (Array.isArray(value)) {
    let text = '['
    for (let i = 0; i < value.length; i++) {
      const item = canonical(value[i], depth + 1)
      if (item === null) return null
      text += i === 0 ? item : `,${item}`
    }
    return `${text}]`
  }

  if (!isPlain(value)) {
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      return canonical(value.toJSON(), depth + 1, ignoredMember)
    }
    if (Object.prototype.toString.call(value) !== '[object Object]') throw notComparable(value)
  }
  const names = Object.keys(value)
  sort(names)
  let text = '{'
  for (const name of names) {
    if (name === ignoredMember) continue
    const member = canonical((value as Record<string, unknown>)[name], depth + 1)
    if (member === null) return null
    text += `${text.length === 1 ? '' : ','}${JSON.stringify(name)}:${member}`
  }
  return `${text}}`
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
