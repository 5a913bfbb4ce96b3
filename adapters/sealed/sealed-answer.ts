import { Buffer } from 'node:buffer'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Answer } from '../../src/core/index.js'
import { SealedStoreError } from './errors.js'
import type { ReadOptions } from './options.js'
import { decryptBytes, encryptBytes, sealBrokenError } from './seal.js'

/** The record of an answer: an answer that was sealed for one record cannot be opened for another. */
interface RecordIdentity {
  readonly key: string
  readonly fingerprint: string
  /** Where the store keeps its records: its prefix or schema. */
  readonly place: string
}

/**
 * Not an HTTP status: a process without sealing treats the answer as one that cannot be sent, which is a store failure.
 */
const SEALED_STATUS = 0
const SEALED_MESSAGE = 'sealed'
const SEALED_HEADER = 'sealed'

/**
 * The sealed form of an answer. It shows nothing of the answer except whether its body was kept: stores and operators
 * tell that by `body: null`, and then the rest is sealed in a header.
 */
export function sealAnswer(answer: Answer, of: RecordIdentity, { keys, compress }: ReadOptions): Answer {
  const { status, statusMessage, headers, body } = answer
  const head = Buffer.from(JSON.stringify([status, statusMessage, headers]))
  const isKept = body !== null
  const plain = packBytes([encodeLength(head), head, body ?? NOTHING], compress)
  const sealed = encryptBytes(plain, boundTo(of, isKept), keys[0])
  return {
    status: SEALED_STATUS,
    statusMessage: SEALED_MESSAGE,
    headers: isKept ? [] : [[SEALED_HEADER, sealed.toString('base64')]],
    body: isKept ? sealed : null,
  }
}

/** @throws SealedStoreError */
export function openAnswer(answer: Answer, of: RecordIdentity, { keys, unsealedMayBeReplayed }: ReadOptions): Answer {
  const sealed = findSeal(answer)
  if (sealed === null) {
    // If a store or an operator has dropped the body, there is nothing to send.
    if (answer.body === null || unsealedMayBeReplayed) return answer
    throw unsealedAnswerError()
  }
  const isKept = answer.body !== null
  const plain = unpackBytes(decryptBytes(sealed, boundTo(of, isKept), keys))
  const bodyFrom = LENGTH_BYTES + plain.readUInt32BE(0)
  const [status, statusMessage, headers] = JSON.parse(plain.toString('utf8', LENGTH_BYTES, bodyFrom))
  return { status, statusMessage, headers, body: isKept ? plain.subarray(bodyFrom) : null }
}

/** The sealed form of a step's result, bound to its label, too. */
export function sealResult(result: Uint8Array, label: string, of: RecordIdentity, { keys }: ReadOptions): Uint8Array {
  return encryptBytes([result], boundToStep(of, label), keys[0])
}

/** @throws SealedStoreError */
export function openResult(result: Uint8Array, label: string, of: RecordIdentity, options: ReadOptions): Uint8Array {
  if (!isText(result)) return decryptBytes(result, boundToStep(of, label), options.keys)
  if (options.unsealedMayBeReplayed) return result
  throw unsealedAnswerError()
}

/** A result is JSON, unless the application encodes it. A seal begins with its format, which is no sign of a text. */
function isText(result: Uint8Array): boolean {
  return (result[0] ?? 0) >= FIRST_SIGN
}

const FIRST_SIGN = 0x20

/** Five members: no answer is bound to as many. */
function boundToStep({ key, fingerprint, place }: RecordIdentity, label: string): string {
  return JSON.stringify([place, key, fingerprint, 'step', label])
}

/** `null` if the answer is not sealed. */
function findSeal({ status, statusMessage, headers, body }: Answer): Uint8Array | null {
  if (status !== SEALED_STATUS || statusMessage !== SEALED_MESSAGE) return null
  if (body !== null) return body
  const [name, value] = headers[0] ?? []
  if (name !== SEALED_HEADER || value === undefined) throw sealBrokenError()
  return Buffer.from(value, 'base64')
}

/** Injective, because it is JSON. */
function boundTo({ key, fingerprint, place }: RecordIdentity, isKept: boolean): string {
  return JSON.stringify([place, key, fingerprint, isKept])
}

const NOTHING = Buffer.alloc(0)
const LENGTH_BYTES = 4
const AS_IT_IS = Buffer.from([0])
const DEFLATED = Buffer.from([1])
/** Compression blocks the process: this level has most of the gain in a third of the time. */
const FAST = { level: 1 }

/** The first byte says whether the rest is deflated (RFC 1951). */
function packBytes(plain: readonly Uint8Array[], compress: boolean): Uint8Array[] {
  if (compress) {
    const whole = Buffer.concat(plain)
    const deflated = deflateRawSync(whole, FAST)
    if (LENGTH_BYTES + deflated.byteLength < whole.byteLength) return [DEFLATED, encodeLength(whole), deflated]
  }
  return [AS_IT_IS, ...plain]
}

/** The seal was authentic, so the length can be trusted. */
function unpackBytes(packed: Buffer): Buffer {
  const rest = packed.subarray(1)
  if (packed[0] !== DEFLATED[0]) return rest
  return inflateRawSync(rest.subarray(LENGTH_BYTES), { maxOutputLength: rest.readUInt32BE(0) })
}

function encodeLength({ byteLength }: Uint8Array): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32BE(byteLength)
  return length
}

function unsealedAnswerError(): SealedStoreError {
  return new SealedStoreError(
    'answer_unsealed',
    'A stored answer, or the result of a step, is not sealed, so it was not used, and was left unchanged. If it was stored before ' +
      'sealing was switched on, set `unsealedMayBeReplayed` until `retentionMs` has passed. If not, find out who writes to the store.',
  )
}
