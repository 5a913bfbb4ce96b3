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

/** "integer unix timestamp (seconds since epoch)" (Standard Webhooks); Stripe's is the same. */
export const UNIX_SECONDS = /^\d{1,12}$/

/** Whether a signed time differs from this machine's clock by at most so much, in either direction. */
export function isRecent(unixSeconds: string, toleranceMs: number): boolean {
  const ageSeconds = Math.floor(Date.now() / 1_000) - Number(unixSeconds)
  return Math.abs(ageSeconds) * 1_000 <= toleranceMs
}
