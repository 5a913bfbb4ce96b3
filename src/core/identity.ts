import { isAccident } from './accidents.js'
import { kindOf } from './errors.js'

/** What a record is found by, and bound to. */
export interface Identity {
  /** Keeps operations of one kind apart from those of others: a word without a colon, a percent sign or a blank. Absent for requests. */
  readonly namespace?: string | undefined
  readonly scope: string
  readonly key: string
  readonly fingerprint: string
}

/** Which record is meant: as events and `req.idempotency` name it. */
export interface RecordName {
  readonly scope: string
  readonly key: string
  /**
   * The kind of operation; absent: a request. `'webhook'`: a delivery, whose scope is the `source`, and whose key is the event's
   * `id`; where that can be no key, the one that `onEvent` tells. `'run.<name>'`: an operation of the runner of that name.
   */
  readonly namespace?: string | undefined
}

/**
 * Injective: no part can contain the colon, and a namespace makes one part more. Readable in a console, and free of a
 * cluster's hash tags.
 */
export function storageKey(name: RecordName, scope = storageScope(name)): string {
  // Joined, it is one flat text: a record keeps it, and a template would be kept as its pieces.
  return [scope, encoded(name.key)].join(':')
}

/** The name of the record that a storage key stands for; `null`: it is no storage key. */
export function recordName(storageKey: string): RecordName | null {
  const parts = storageKey.split(':')
  if (parts.length < 2 || parts.length > 3) return null
  try {
    const [scope, key] = parts.slice(-2).map(decodeURIComponent) as [string, string]
    return parts.length === 2 ? { scope, key } : { namespace: parts[0], scope, key }
  } catch {
    return null // No part of ours: a percent sign that encodes nothing.
  }
}

/** `encodeURIComponent`, which changes nothing in most keys: a UUID has nothing to encode. */
function encoded(text: string): string {
  return UNRESERVED.test(text) ? text : encodeURIComponent(text)
}

/** ECMA-262 §19.2.6.5: "the set of unescaped code units". */
const UNRESERVED = /^[\w.!~*'()-]*$/

/** What the storage keys of a scope have in common: two namespaces share nothing, the room in a store included. */
export function storageScope({ namespace, scope }: Pick<RecordName, 'namespace' | 'scope'>): string {
  const name = encodeURIComponent(scope)
  return namespace === undefined ? name : `${namespace}:${name}`
}

/** The scope that shares its store with no other: a store gives it all of its room. */
export const SINGLE_TENANT = 'single-tenant'

/** "a string of at most 255 characters" (the payments service's limit; also that of most public payment APIs). */
const MAX_CHARACTERS = 255
const CONTROL_CHARACTER = /\p{Cc}/u

/** What is wrong with a key wherever it comes from, as a sentence about it; `null`: nothing. */
export function keyFault(key: string): string | null {
  if (key === '') return 'it is empty'
  if (isTooLong(key)) return `it is longer than ${MAX_CHARACTERS} characters`
  if (CONTROL_CHARACTER.test(key)) return 'it contains a control character'
  return key.isWellFormed() ? null : 'it contains half of a surrogate pair'
}

/** What is wrong with a scope, in words that follow "answered"; `null`: nothing. */
export function scopeFault(given: unknown): string | null {
  if (typeof given !== 'string') return kindOf(given)
  if (given === '') return 'an empty string'
  if (isTooLong(given)) return `more than ${MAX_CHARACTERS} characters`
  if (isAccident(given)) return `the word "${given}"`
  return given.isWellFormed() ? null : 'half of a surrogate pair'
}

/** What is wrong with a namespace, in words that follow "seen"; `null`: nothing. */
export function namespaceFault(given: unknown): string | null {
  if (typeof given !== 'string') return kindOf(given)
  return /^[^\s:%]{1,255}$/u.test(given)
    ? null
    : 'a word that is empty, too long, or has a colon, a percent sign or a blank'
}

function isTooLong(text: string): boolean {
  return text.length > MAX_CHARACTERS && [...text].length > MAX_CHARACTERS
}
