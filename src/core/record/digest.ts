import { Buffer } from 'node:buffer'
import { createHash, type Hash, hash } from 'node:crypto'
import { describeKind, IdempotencyError } from '../errors.js'
import { ExactDecimal, isPlain } from '../json.js'

/** The traversal is recursive: a deeper value would overflow the stack. */
export const MAX_DEPTH = 1_000

/** Frozen within a major version: records made before an upgrade must still match. Held by golden files. */
const FORMAT = 'v1.'

type DigestFault =
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
  const digest: string | DigestFault =
    value === undefined ? { fault: 'not_comparable', seen: 'undefined' } : computeDigest(value)
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
export function computeDigest(
  value: unknown,
  ignoredMember?: string,
  kind?: string,
  target = '',
): string | DigestFault {
  // The length marks the end of the target, so no prefix begins with another one.
  const prefix = kind === undefined ? '' : `${kind} ${target.length} ${target}\n`
  // A lone surrogate has no UTF-8 form: such a string is hashed as JSON.
  if (value instanceof Uint8Array || (typeof value === 'string' && value.isWellFormed())) {
    return FORMAT + createHash('sha256').update(`${prefix}bytes\n`).update(value).digest('base64url')
  }
  const hasher = new CanonicalHasher(`${prefix}json\n`)
  try {
    return hasher.addValue(value, 0, ignoredMember) ?? FORMAT + hasher.digest()
  } finally {
    hasher.releaseBytes()
  }
}

const TOO_DEEP: DigestFault = { fault: 'too_deep' }

/**
 * Hashes the canonical form of a value: members sorted by UTF-16 code unit as in RFC 8785, and none left out. Unlike RFC 8785 it accepts
 * every value that a parser can make: 1e400 is `Infinity`, and lone surrogates stay distinct, because JSON.stringify escapes them.
 *
 * It is written as UTF-8, and hashed in parts. As one string, a body of 64 kB takes twice as long, because the collector copies the
 * pieces of a string that grows, and one of 200 bytes takes a fifth more (Node 24 and 26).
 */
class CanonicalHasher {
  readonly #bytes = takeSpareBytes()
  #length = 0
  #hash: Hash | undefined

  constructor(prefix: string) {
    this.#addText(prefix)
  }

  /** Adds a value and its members. If it has no form, returns why. */
  addValue(value: unknown, depth: number, ignoredMember?: string): DigestFault | undefined {
    switch (typeof value) {
      case 'string':
        return void this.#addString(value)
      case 'number':
      case 'boolean':
      case 'bigint':
      case 'undefined':
        return void this.#addAscii(Object.is(value, -0) ? '0' : String(value))
      case 'object':
        break
      default:
        return createNotComparableFault(value)
    }
    if (value === null) return void this.#addAscii('null')
    if (value instanceof ExactDecimal) return void this.#addAscii(value.text)
    if (depth === MAX_DEPTH) return TOO_DEEP

    if (!isPlain(value)) {
      return 'toJSON' in value && typeof value.toJSON === 'function'
        ? this.addValue(value.toJSON(), depth + 1, ignoredMember)
        : createNotComparableFault(value)
    }
    return Array.isArray(value)
      ? this.#addArray(value, depth)
      : this.#addObject(value as Record<string, unknown>, depth, ignoredMember)
  }

  digest(): string {
    const last = this.#bytes.subarray(0, this.#length)
    return this.#hash === undefined ? hash('sha256', last, 'base64url') : this.#hash.update(last).digest('base64url')
  }

  /** Its bytes are free for the next one. */
  releaseBytes(): void {
    spareBytes = this.#bytes
  }

  #addArray(value: readonly unknown[], depth: number): DigestFault | undefined {
    this.#addByte(0x5b)
    for (let i = 0; i < value.length; i++) {
      if (i > 0) this.#addByte(0x2c)
      const fault = this.addValue(value[i], depth + 1)
      if (fault !== undefined) return fault
    }
    this.#addByte(0x5d)
    return undefined
  }

  #addObject(value: Record<string, unknown>, depth: number, ignoredMember?: string): DigestFault | undefined {
    let separator = 0x7b
    for (const name of listSortedNames(value)) {
      if (name === ignoredMember) continue
      this.#addByte(separator)
      this.#addString(name)
      this.#addByte(0x3a)
      const fault = this.addValue(value[name], depth + 1)
      if (fault !== undefined) return fault
      separator = 0x2c
    }
    if (separator === 0x7b) this.#addByte(separator)
    this.#addByte(0x7d)
    return undefined
  }

  /** As JSON. Most strings are short and need no escapes: to copy them here takes a third of the time of a call of Node's. */
  #addString(text: string): void {
    const { length } = text
    if (length > FEW_UNITS) return void this.#addText(NEEDS_NO_ESCAPES.test(text) ? `"${text}"` : JSON.stringify(text))
    if (length + 2 > PART_BYTES - this.#length) this.#flush()
    const bytes = this.#bytes
    let at = this.#length
    bytes[at++] = 0x22
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i)
      if (unit < 0x20 || unit > 0x7e || unit === 0x22 || unit === 0x5c) return void this.#addText(JSON.stringify(text))
      bytes[at++] = unit
    }
    bytes[at++] = 0x22
    this.#length = at
  }

  #addByte(byte: number): void {
    if (this.#length === PART_BYTES) this.#flush()
    this.#bytes[this.#length++] = byte
  }

  #addText(text: string): void {
    const most = text.length * MAX_BYTES_A_UNIT
    if (most > PART_BYTES) this.#flush().update(text)
    else {
      if (most > PART_BYTES - this.#length) this.#flush()
      this.#length += ENCODER.encodeInto(text, this.#bytes.subarray(this.#length)).written
    }
  }

  #addAscii(text: string): void {
    const { length } = text
    if (length > FEW_UNITS) return void this.#addText(text)
    if (length > PART_BYTES - this.#length) this.#flush()
    const bytes = this.#bytes
    const at = this.#length
    for (let i = 0; i < length; i++) bytes[at + i] = text.charCodeAt(i)
    this.#length = at + length
  }

  #flush(): Hash {
    this.#hash ??= createHash('sha256')
    this.#hash.update(this.#bytes.subarray(0, this.#length))
    this.#length = 0
    return this.#hash
  }
}

/** Kept between digests. A `toJSON` that makes another digest meanwhile gets its own. */
let spareBytes: Buffer | undefined

function takeSpareBytes(): Buffer {
  const bytes = spareBytes ?? Buffer.allocUnsafeSlow(PART_BYTES)
  spareBytes = undefined
  return bytes
}

const ENCODER = new TextEncoder()
const PART_BYTES = 16_384
/** Of a UTF-16 code unit in UTF-8. */
const MAX_BYTES_A_UNIT = 3
const FEW_UNITS = 32
const NEEDS_NO_ESCAPES = /^[ !#-[\]-~]*$/

/**
 * In the order of UTF-16 code units. Few are sorted by insertion, because each call of `sort` allocates a stack of runs of 1.4 kB. For the
 * two objects of a payout that was a sixth of what the library allocates for a first request in memory (Node 24, V8's sampling of
 * allocations).
 */
function listSortedNames(value: object): string[] {
  const names = Object.keys(value)
  if (names.length > FEW_NAMES) return names.sort()
  for (let i = 1; i < names.length; i++) {
    const name = names[i] as string
    let at = i
    for (; at > 0 && (names[at - 1] as string) > name; at--) names[at] = names[at - 1] as string
    names[at] = name
  }
  return names
}

const FEW_NAMES = 16

function createNotComparableFault(value: unknown): DigestFault {
  return { fault: 'not_comparable', seen: describeKind(value) }
}
