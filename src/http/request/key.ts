import { Buffer, isUtf8 } from 'node:buffer'
import { describeKind } from '../../core/errors.js'
import { ExactDecimal, isPlain } from '../../core/json.js'
import { findKeyFault, isAccidentalName, MAX_CHARACTERS } from '../../core/record/identity.js'
import type { LegacyKey } from '../options/options.js'
import { getHeaderLines, getHeaderObjectValues, type RequestFacts } from './facts.js'

/** A key, or what is wrong with it, worded for the client. */
export type KeyReading = { readonly key: string } | { readonly invalid: string }

/**
 * What a request has under the name of the key's header.
 *
 * - `lines`: as received. There must be one. Node decodes it as Latin-1, and its bytes are read as UTF-8 if they are valid UTF-8.
 * - `joined`: as received, but several lines would be one, joined by a comma and a space (Fetch, "combine"). Such a value is refused,
 *   unless it is one RFC 8941 string, since nobody can tell whether it was two keys.
 * - `put`: no line was received, and code in front has put this there. Its text counts as it is.
 */
export interface KeyHeader {
  readonly origin: 'lines' | 'joined' | 'put'
  readonly values: readonly unknown[]
}

/** `null`: there is none. */
export function findKeyHeader(
  facts: Pick<RequestFacts, 'rawHeaders' | 'headers' | 'joinsHeaderLines'>,
  lowerCaseName: string,
): KeyHeader | null {
  const lines = getHeaderLines(facts, lowerCaseName)
  const values = lines.length > 0 ? lines : getHeaderObjectValues(facts, lowerCaseName)
  if (values.length === 0) return null
  return { origin: facts.joinsHeaderLines ? 'joined' : lines.length > 0 ? 'lines' : 'put', values }
}

export function readKeyHeader({ origin, values }: KeyHeader): KeyReading {
  const [value] = values
  if (values.length > 1) return { invalid: 'it was sent more than once; send one line' }
  if (typeof value !== 'string') return { invalid: `it is ${describeKind(value)}, not a string` }
  if (origin === 'joined' && value.includes(', ') && !RFC_8941_STRING.test(value)) return { invalid: MAY_BE_TWO }
  if (PLAIN_KEY.test(value) && !isAccidentalName(value)) return { key: value }
  return readKey(origin === 'put' ? value : decodeHeaderLine(value))
}

/**
 * The key in a request's text. A value that is one RFC 8941 string (`"abc"`) is unwrapped. Any other value is used
 * unchanged, even if it begins with a quote: `"abc";a=1` is a key of nine characters, and `"ä"` of three.
 */
export function readKey(text: string): KeyReading {
  const isString = text.length <= LONGEST_STRING && RFC_8941_STRING.test(text)
  const key = isString ? text.slice(1, -1).replace(/\\(["\\])/g, '$1') : text
  const invalid = findKeyFault(key) ?? findAccidentFault(key)
  return invalid === null ? { key } : { invalid }
}

const MAY_BE_TWO =
  'it was sent more than once, or has a comma and a space in it, which looks the same here; send one line, in double quotes if it has them'

/** Only for requests: the id of an event, or a name that an operator looks up, may be such a word. */
function findAccidentFault(key: string): string | null {
  return isAccidentalName(key) ? `it is the word "${key}", which usually means a missing value` : null
}

/** RFC 8941 §3.3.3: DQUOTE, then unescaped characters or an escaped quote or backslash, then DQUOTE. */
const RFC_8941_STRING = /^"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"$/
/** One that is longer is too long as a key, too. A body's field may have megabytes, which overflow the expression's stack. */
const LONGEST_STRING = 2 * MAX_CHARACTERS + 2
/** What most clients send, for example a UUID: ASCII that does not begin with a quote. */
const PLAIN_KEY = /^[\x21\x23-\x7e][\x20-\x7e]{0,254}$/
const BEYOND_ASCII = /\P{ASCII}/u
const BEYOND_LATIN_1 = /[^\0-\u00ff]/

function decodeHeaderLine(line: string): string {
  if (!BEYOND_ASCII.test(line) || BEYOND_LATIN_1.test(line)) return line
  const bytes = Buffer.from(line, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : line
}

/** `null` if the field is absent (or `null`). */
export function readLegacyKey(legacy: LegacyKey, body: unknown): KeyReading | null {
  if (typeof body !== 'object' || body === null || !hasMember(body, legacy.field)) return null
  const value = (body as Record<string, unknown>)[legacy.field]
  if (value === null || value === undefined) return null
  if (typeof value !== 'string') {
    const seen = value instanceof ExactDecimal ? 'a number' : describeKind(value)
    return { invalid: `the body's ${JSON.stringify(legacy.field)} is ${seen}, not a string` }
  }
  return readKey(value)
}

/** Of its own, as parsed bodies have them, or an accessor of its class, if a validator has made an object of a class of it. */
function hasMember(body: object, name: string): boolean {
  if (Object.hasOwn(body, name)) return true
  if (isPlain(body)) return false
  let each: object | null = Object.getPrototypeOf(body)
  while (each !== null && !Object.hasOwn(each, name)) each = Object.getPrototypeOf(each)
  return each !== null && Object.getOwnPropertyDescriptor(each, name)?.get !== undefined
}

/**
 * Headers of every response to a request with the field, whichever key counts. Computed once, when the options are
 * read.
 */
export function buildDeprecationHeaders(legacy: LegacyKey): readonly (readonly [name: string, value: string])[] {
  const headers: [string, string][] = [
    // RFC 9745 §2: "The value of the Deprecation HTTP response header field … MUST be a Date as per RFC 9651".
    ['Deprecation', `@${Math.floor(legacy.deprecatedSince.getTime() / 1000)}`],
  ]
  if (legacy.sunset !== undefined) headers.push(['Sunset', legacy.sunset.toUTCString()])
  if (legacy.link !== undefined) headers.push(['Link', `<${legacy.link}>; rel="deprecation"`])
  return headers
}
