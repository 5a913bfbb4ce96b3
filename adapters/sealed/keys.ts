import { Buffer } from 'node:buffer'
import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { IdempotencyError } from '../../src/core/index.js'

/** AES-256. */
const KEY_BYTES = 32
/** Enough to distinguish the few keys of one service. */
export const KEY_ID_BYTES = 8

/**
 * A new key for `sealed`: 32 random bytes as base64. Keep it with the database's password, and keep a copy: without it
 * the stored answers are lost.
 */
export function newSealingKey(): string {
  return randomBytes(KEY_BYTES).toString('base64')
}

/**
 * The id of a key in messages: 16 hexadecimal digits that reveal nothing about it.
 *
 * @throws IdempotencyError `arguments_invalid`: not a valid key.
 */
export function sealingKeyId(key: string | Uint8Array): string {
  const secret = parseSecret(key)
  if (secret === null) {
    throw new IdempotencyError('arguments_invalid', 'A sealing key is 32 random bytes, or their base64.')
  }
  return new SealingKey(secret).name
}

/** The bytes of a given key; `null` if it is invalid. */
export function parseSecret(given: unknown): Uint8Array | null {
  if (given instanceof Uint8Array) return given.byteLength === KEY_BYTES ? given : null
  if (typeof given !== 'string' || !BASE64_OF_32_BYTES.test(given)) return null
  return Buffer.from(given, 'base64')
}

/** With or without padding, in either alphabet. */
const BASE64_OF_32_BYTES = /^[\w+/-]{43}=?$/

/**
 * A sealing key, and the keys derived from it. Each answer has its own key, so one sealing key can seal any number of
 * answers: random nonces under one key are limited to 2³² messages (NIST SP 800-38D §8.3).
 */
export class SealingKey {
  /** Identifies the key in a sealed answer. */
  readonly id: Buffer
  readonly #secret: KeyObject

  constructor(secret: Uint8Array) {
    this.#secret = createSecretKey(secret)
    this.id = this.#deriveBytes(KEY_ID, NOTHING).subarray(0, KEY_ID_BYTES)
  }

  /** The id as shown in messages. */
  get name(): string {
    return this.id.toString('hex')
  }

  deriveAnswerKey(salt: Uint8Array): Buffer {
    return this.#deriveBytes(ANSWER_KEY, salt)
  }

  /**
   * HKDF-Expand of RFC 5869 §2.3; its first block is enough. Extract is not needed, because the key is already random
   * (§3.3).
   */
  #deriveBytes(label: string, salt: Uint8Array): Buffer {
    return createHmac('sha256', this.#secret).update(label).update(salt).update(FIRST_BLOCK).digest()
  }
}

const KEY_ID = 'once-per-key: id of a sealing key'
const ANSWER_KEY = 'once-per-key: key of an answer'
const NOTHING = Buffer.alloc(0)
const FIRST_BLOCK = Buffer.from([1])
