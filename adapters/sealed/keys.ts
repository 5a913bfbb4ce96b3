import { Buffer } from 'node:buffer'
import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { IdempotencyError } from '../../src/core/index.js'

/** AES-256. */
const KEY_BYTES = 32
/** Enough to tell the few keys of one service apart. */
export const KEY_ID_BYTES = 8

/**
 * A new key for `sealed`, as base64 of 32 random bytes. Keep it where you keep the database's password, and a copy of it where you
 * keep that copy: without it the stored answers are lost.
 */
export function newSealingKey(): string {
  return randomBytes(KEY_BYTES).toString('base64')
}

/**
 * What a key is called in messages: 16 hexadecimal digits that tell nothing of it.
 *
 * @throws IdempotencyError `arguments_invalid`: it is no key.
 */
export function sealingKeyId(key: string | Uint8Array): string {
  const secret = secretIn(key)
  if (secret === null) {
    throw new IdempotencyError('arguments_invalid', 'A sealing key is 32 random bytes, or their base64.')
  }
  return new SealingKey(secret).name
}

/** The bytes of a key as it was given; `null`: it is none. */
export function secretIn(given: unknown): Uint8Array | null {
  if (given instanceof Uint8Array) return given.byteLength === KEY_BYTES ? given : null
  if (typeof given !== 'string' || !BASE64_OF_32_BYTES.test(given)) return null
  return Buffer.from(given, 'base64')
}

/** With its padding or without, in either alphabet. */
const BASE64_OF_32_BYTES = /^[\w+/-]{43}=?$/

/**
 * A key, and what is derived from it. Each answer is sealed with a key of its own, so no number of answers is too many for one
 * sealing key: random nonces under one key are good for 2³² messages (NIST SP 800-38D §8.3).
 */
export class SealingKey {
  /** By which a sealed answer names it. */
  readonly id: Buffer
  readonly #secret: KeyObject

  constructor(secret: Uint8Array) {
    this.#secret = createSecretKey(secret)
    this.id = this.#derived(KEY_ID, NOTHING).subarray(0, KEY_ID_BYTES)
  }

  /** The id as messages show it. */
  get name(): string {
    return this.id.toString('hex')
  }

  forAnswer(salt: Uint8Array): Buffer {
    return this.#derived(ANSWER_KEY, salt)
  }

  /** HKDF-Expand of RFC 5869 §2.3, whose first block is all that is needed. The key is random already (§3.3). */
  #derived(label: string, salt: Uint8Array): Buffer {
    return createHmac('sha256', this.#secret).update(label).update(salt).update(FIRST_BLOCK).digest()
  }
}

const KEY_ID = 'once-per-key: id of a sealing key'
const ANSWER_KEY = 'once-per-key: key of an answer'
const NOTHING = Buffer.alloc(0)
const FIRST_BLOCK = Buffer.from([1])
