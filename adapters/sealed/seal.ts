import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { SealedStoreError } from './errors.js'
import { KEY_ID_BYTES, type SealingKey } from './keys.js'

/**
 * Bytes under AES-256-GCM. What stands before them says how: the format, the key by its id, and what the key of this one seal
 * is derived from. All of it is authenticated, and so is what the seal is bound to.
 *
 * | bytes | what                                                  |
 * |-------|-------------------------------------------------------|
 * | 1     | the format: 1                                         |
 * | 8     | the id of the sealing key                             |
 * | 16    | salt: random; of it the key of this seal is derived   |
 * | 12    | nonce: random                                         |
 * | …     | the ciphertext, as long as the bytes                  |
 * | 16    | the tag                                               |
 */
const FORMAT = 1
const SALT_BYTES = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SALT_FROM = 1 + KEY_ID_BYTES
const NONCE_FROM = SALT_FROM + SALT_BYTES
const HEAD_BYTES = NONCE_FROM + NONCE_BYTES
/** Explicitly OpenSSL's default for GCM, so that a shorter tag is never accepted. */
const TAG = { authTagLength: TAG_BYTES } as const
const CIPHER = 'aes-256-gcm'

/** How much longer a seal is than its content. */
const SEAL_BYTES = HEAD_BYTES + TAG_BYTES

/** `boundTo`: what must be the same when it is opened. */
export function encryptBytes(bytes: readonly Uint8Array[], boundTo: string, key: SealingKey): Buffer {
  const random = randomBytes(SALT_BYTES + NONCE_BYTES)
  const head = Buffer.concat([Buffer.from([FORMAT]), key.id, random])
  const cipher = createCipheriv(CIPHER, key.deriveAnswerKey(random.subarray(0, SALT_BYTES)), readNonce(head), TAG)
  cipher.setAAD(Buffer.concat([head, Buffer.from(boundTo)]))
  const sealed = bytes.map((part) => cipher.update(part))
  return Buffer.concat([head, ...sealed, cipher.final(), cipher.getAuthTag()])
}

/** @throws SealedStoreError */
export function decryptBytes(sealed: Uint8Array, boundTo: string, keys: readonly SealingKey[]): Buffer {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
  if (bytes.byteLength < SEAL_BYTES) throw sealBrokenError()
  if (bytes[0] !== FORMAT) throw unknownFormatError()
  const id = bytes.subarray(1, SALT_FROM)
  const key = keys.find((each) => each.id.equals(id))
  if (key === undefined) throw missingKeyError(id.toString('hex'), keys)
  const tagFrom = bytes.byteLength - TAG_BYTES
  const head = bytes.subarray(0, HEAD_BYTES)
  const decipher = createDecipheriv(
    CIPHER,
    key.deriveAnswerKey(head.subarray(SALT_FROM, NONCE_FROM)),
    readNonce(head),
    TAG,
  )
  decipher.setAAD(Buffer.concat([head, Buffer.from(boundTo)]))
  decipher.setAuthTag(bytes.subarray(tagFrom))
  const opened = decipher.update(bytes.subarray(HEAD_BYTES, tagFrom))
  try {
    decipher.final()
  } catch {
    throw sealBrokenError()
  }
  return opened
}

function readNonce(head: Buffer): Buffer {
  return head.subarray(NONCE_FROM)
}

export function sealBrokenError(): SealedStoreError {
  return new SealedStoreError(
    'seal_broken',
    'A stored answer was changed after it was sealed, or belongs to another record: it was not opened, and was left unchanged. Find out who ' +
      'writes to the store; the idempotency key stays refused until its retention ends, or until the record is removed.',
  )
}

function unknownFormatError(): SealedStoreError {
  return new SealedStoreError(
    'seal_format_unknown',
    'A stored answer was sealed by a later version of the library, or is damaged: it was not opened, and was left unchanged. Use ' +
      'the version that sealed it.',
  )
}

function missingKeyError(id: string, keys: readonly SealingKey[]): SealedStoreError {
  const known = keys.map(({ name }) => name).join(', ')
  return new SealedStoreError(
    'seal_key_missing',
    `A stored answer is sealed with the key ${id}, which is not among \`keys\` (${known}): add it after the first one until ` +
      '`retentionMs` has passed.',
  )
}
