import { hash } from 'node:crypto'
import { describeKind, IdempotencyError } from '../errors.js'

/** What identifies a record, and what it is bound to. */
export interface Identity {
  /**
   * Separates operations of one kind from others: a word without a colon, a percent sign or a blank. Absent for
   * requests.
   */
  readonly namespace?: string | undefined
  readonly scope: string
  readonly key: string
  /** The path that the key belongs to: the same key on another path is another operation. Absent: it is the same. */
  readonly path?: string | undefined
  readonly fingerprint: string
  /** The scope of an application that has only this one: a store gives it all its room. */
  readonly isOnlyScope?: boolean
  /**
   * When the operation was first sent by whoever repeats it, never when this attempt was. If its record may be gone by now, it is
   * refused with `key_expired` and not run. Absent: unknown, and nothing is checked.
   */
  readonly firstSent?: Date | undefined
}

/** The name of a record, as in events and `req.idempotency`. */
export interface RecordName {
  readonly scope: string
  readonly key: string
  /**
   * The kind of operation; absent for requests. `'webhook'`: a delivery, whose scope is the `source`, and whose key is
   * the event's `id`, or, if the id is not a valid key, the key in the events of `onEvent`. `'run.<name>'`: an
   * operation of the runner with that name.
   */
  readonly namespace?: string | undefined
  /** The path of the request, without its query, if its `profile` says that a key belongs to one; else absent. */
  readonly path?: string | undefined
}

/**
 * Injective: no part can contain the colon, and a namespace adds a part. Readable in a console, and without a cluster's
 * hash tags.
 */
export function buildStorageKey(name: RecordName, scope = buildStorageScope(name)): string {
  // Joined into one flat string, because a record keeps it; a template would be kept as its pieces.
  return [scope, encodeNamePart(name.path === undefined ? name.key : name.key + PATH_FOLLOWS + name.path)].join(':')
}

/** No key contains it, because it is a control character. */
const PATH_FOLLOWS = '\n'

/** The record's name in a storage key; `null` if it is not a storage key. */
export function parseStorageKey(storageKey: string): RecordName | null {
  const parts = storageKey.split(':')
  if (parts.length < 2 || parts.length > 3) return null
  try {
    const [scope, last] = parts.slice(-2).map(decodeURIComponent) as [string, string]
    const [key, ...path] = last.split(PATH_FOLLOWS) as [string, ...string[]]
    const name = { scope, key, ...(path.length > 0 && { path: path.join(PATH_FOLLOWS) }) }
    return parts.length === 2 ? name : { namespace: parts[0], ...name }
  } catch {
    return null // Malformed percent-encoding.
  }
}

/** `encodeURIComponent`, skipped for most keys: a UUID needs no encoding. */
function encodeNamePart(text: string): string {
  return UNRESERVED.test(text) ? text : encodeURIComponent(text)
}

/** ECMA-262 §19.2.6.5: "the set of unescaped code units". */
const UNRESERVED = /^[\w.!~*'()-]*$/

/** The common prefix of a scope's storage keys. Two namespaces share nothing, not even their room in a store. */
export function buildStorageScope({ namespace, scope }: Pick<RecordName, 'namespace' | 'scope'>): string {
  const name = encodeNamePart(scope)
  return namespace === undefined ? name : `${namespace}:${name}`
}

/**
 * As the scope of a store's commands: one that shares its store with no other, so a store gives it all its room. It has a
 * blank, which no scope and no namespace have in the form in which a store gets them: nobody can be named so.
 */
export const SINGLE_TENANT = 'single tenant'

/** "a string of at most 255 characters" (the payments service's limit; also that of most public payment APIs). */
export const MAX_CHARACTERS = 255
const CONTROL_CHARACTER = /\p{Cc}/u

/** What is wrong with a key, wherever it comes from, as a clause about it; `null`: nothing. */
export function findKeyFault(key: string): string | null {
  return findNameFault(key, MAX_CHARACTERS)
}

/** The same for a name with another maximum length, such as a step's label. */
export function findNameFault(name: string, mostCharacters: number): string | null {
  if (name === '') return 'it is empty'
  if (isTooLong(name, mostCharacters)) return `it is longer than ${mostCharacters} characters`
  if (CONTROL_CHARACTER.test(name)) return 'it contains a control character'
  return name.isWellFormed() ? null : 'it contains a lone surrogate'
}

/** What is wrong with a scope, as a noun phrase after "seen"; `null`: nothing. */
export function findScopeFault(given: unknown): string | null {
  if (typeof given !== 'string') return describeKind(given)
  if (given === '') return 'an empty string'
  if (isTooLong(given, MAX_CHARACTERS)) return `more than ${MAX_CHARACTERS} characters`
  if (isAccidentalName(given)) return `the word "${given}"`
  return given.isWellFormed() ? null : 'a string with a lone surrogate'
}

/** What is wrong with the time at which an operation was first sent, as a clause about it; `null`: nothing. */
export function findFirstSentFault(firstSent: Date, clockSkewMs: number): string | null {
  const aheadMs = firstSent.getTime() - Date.now()
  if (Number.isNaN(aheadMs)) return 'it is not a valid date'
  return aheadMs > clockSkewMs ? 'it is in the future' : null
}

/** What is wrong with a namespace, as a noun phrase after "seen"; `null`: nothing. */
export function findNamespaceFault(given: unknown): string | null {
  if (typeof given !== 'string') return describeKind(given)
  return /^[^\s:%]{1,255}$/u.test(given)
    ? null
    : 'a word that is empty, too long, or has a colon, a percent sign or a blank'
}

/** A character has at most two code units: of a text of megabytes, they are not counted. */
function isTooLong(text: string, mostCharacters: number): boolean {
  if (text.length <= mostCharacters) return false
  return text.length > 2 * mostCharacters || [...text].length > mostCharacters
}

/**
 * Texts that missing values, and promises that nobody awaited, become when they are converted to strings: many clients would share them
 * as a key or scope.
 */
const ACCIDENTS = new Set(['undefined', 'null', 'NaN', '[object Object]', '[object Promise]'])
const LONGEST = Math.max(...[...ACCIDENTS].map(({ length }) => length))

export function isAccidentalName(text: string): boolean {
  return text.length <= LONGEST && ACCIDENTS.has(text)
}

/** Frozen within a major version, because other services store these keys. Held by golden files. */
const FORMAT = 'once-per-key derived key v1'

/**
 * What `deriveKey(label)` returns to the handler of that operation: a UUID from the identity and the label, by RFC 9562
 * §5.8, version 8, "custom UUIDs … based on a hash".
 *
 * @throws IdempotencyError `label_invalid`: the label is empty, or no string.
 */
export function deriveKey(identity: Identity, label: string): string {
  if (typeof label !== 'string' || label === '') {
    const seen = label === '' ? 'an empty string' : describeKind(label)
    throw new IdempotencyError(
      'label_invalid',
      `deriveKey needs a label that names the call, such as 'bank transfer'; seen: ${seen}.`,
    )
  }
  const { namespace, scope, key, fingerprint } = identity
  // One more part than a request's identity, so the two never collide.
  const space = namespace === undefined ? [] : [namespace]
  const hex = hash('sha256', JSON.stringify([FORMAT, ...space, scope, key, fingerprint, label]), 'hex')
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
