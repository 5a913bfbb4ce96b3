import { Buffer, isUtf8 } from 'node:buffer'
import type { Identity } from './identity.js'

/** "a string of at most 255 characters" (the payments service's limit; also that of most public payment APIs). */
const MAX_KEY_CHARACTERS = 255

/** A key, or what is wrong with what was sent, in words for the client. */
export type KeyReading = { readonly key: string } | { readonly invalid: string }

/**
 * Reads the lines of the key's header as they came off the wire, decoded as Latin-1 (Node does so).
 * One line; bytes are UTF-8 where they are valid UTF-8, else Latin-1.
 */
export function readKeyLines(lines: readonly string[]): KeyReading {
  const [line, second] = lines
  if (line === undefined || second !== undefined) return { invalid: 'it was sent more than once; send one line' }
  return readKey(fromWire(line))
}

/** A value that as a whole is one RFC 8941 string (`"abc"`) is unwrapped; anything else is taken as it is. */
export function readKey(text: string): KeyReading {
  const key = RFC_8941_STRING.test(text) ? text.slice(1, -1).replace(/\\(["\\])/g, '$1') : text
  const invalid = keyFault(key)
  return invalid === null ? { key } : { invalid }
}

/** What is wrong with a key, as a sentence about it; `null`: nothing. */
export function keyFault(key: string): string | null {
  if (key === '') return 'it is empty'
  if (key.length > MAX_KEY_CHARACTERS && [...key].length > MAX_KEY_CHARACTERS) {
    return `it is longer than ${MAX_KEY_CHARACTERS} characters`
  }
  if (CONTROL_CHARACTER.test(key)) return 'it contains a control character'
  return key.isWellFormed() ? null : 'it contains half of a surrogate pair'
}

/**
 * Injective: no part can contain the colon, and a namespace makes one part more. Readable in a console, and free of a
 * cluster's hash tags.
 */
export function storageKey({ namespace, scope, key }: Pick<Identity, 'namespace' | 'scope' | 'key'>): string {
  const name = `${encodeURIComponent(scope)}:${encodeURIComponent(key)}`
  return namespace === undefined ? name : `${namespace}:${name}`
}

/** RFC 8941 §3.3.3: DQUOTE, then unescaped characters or an escaped quote or backslash, then DQUOTE. */
const RFC_8941_STRING = /^"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"$/
const CONTROL_CHARACTER = /\p{Cc}/u
const BEYOND_ASCII = /\P{ASCII}/u
const BEYOND_LATIN_1 = /[^\0-\u00ff]/

function fromWire(line: string): string {
  if (!BEYOND_ASCII.test(line) || BEYOND_LATIN_1.test(line)) return line
  const bytes = Buffer.from(line, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : line
}
