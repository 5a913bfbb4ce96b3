import type { Buffer } from 'node:buffer'
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** Checks synchronously that a delivery comes from its sender: a `Verify` for the receiver. */
export type VerifySignature = (raw: Buffer, headers: IncomingHttpHeaders) => boolean

/** The base64 of 32 bytes, padded. */
export const BASE64_SHA256 = /^[A-Za-z0-9+/]{43}=$/

/** 32 bytes in hexadecimal digits. */
export const HEX_SHA256 = /^[0-9a-f]{64}$/i

/**
 * Whether one of the signatures (32 bytes each) was made with one of the keys. Constant time: the duration reveals
 * neither which pair matched nor how many bytes did.
 */
export function isSignedBy(
  keys: readonly Uint8Array[],
  parts: readonly Uint8Array[],
  signatures: readonly Buffer[],
): boolean {
  let found = false
  for (const key of keys) {
    const hmac = createHmac('sha256', key)
    for (const part of parts) hmac.update(part)
    const expected = hmac.digest()
    for (const signature of signatures) found = timingSafeEqual(signature, expected) || found
  }
  return found
}
