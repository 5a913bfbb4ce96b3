import { Buffer } from 'node:buffer'
import { createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { describeKind, type Option, type OptionRule, optionRules } from '../../core/index.js'

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

/**
 * The option `name`: an array of keys, at least one, of which `parseKey` returns what is wrong as text. Messages name the kind of a wrong
 * key, never its value.
 */
export function createKeysOption(name: string, parseKey: (key: unknown) => unknown, isRequired = true): Option {
  const expected = `an array of at least one ${name === 'secrets' ? 'secret' : 'public key'}`
  const rule: OptionRule = (keys) => {
    if (!Array.isArray(keys)) return { expected, seen: describeKind(keys) }
    return keys.length === 0 ? { expected, seen: 'an empty array' } : null
  }
  const findConflicts = (values: Readonly<Record<string, unknown>>): string[] =>
    Array.from((values[name] as readonly unknown[] | undefined) ?? [], parseKey).flatMap((key, at) =>
      typeof key === 'string' ? [`${name}[${at}]: ${key}`] : [],
    )
  return { rule, isRequired, findConflicts }
}

/** How far a timestamp may differ; by default as in Stripe's libraries and those of Standard Webhooks. */
export const toleranceOption = { rule: optionRules.anInteger(1, Number.MAX_SAFE_INTEGER), default: 300_000 }

/** The base64 of the 64 bytes of an Ed25519 signature, padded. */
export const BASE64_ED25519 = /^[A-Za-z0-9+/]{86}==$/

/** RFC 8410 §4: the SubjectPublicKeyInfo of an Ed25519 key, before its 32 bytes. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

/** Returns the key, or what is wrong with it: `whpk_` and the base64 of its 32 bytes, or only the base64. */
export function parseWebhookPublicKey(given: unknown): KeyObject | string {
  if (typeof given !== 'string') return `expected a string; seen: ${describeKind(given)}`
  if (/^whs[ek]/.test(given)) return 'expected the public key (whpk_…), not a secret one'
  const base64 = given.replace(/^whpk_/, '')
  if (!/^[A-Za-z0-9+/]{43}=?$/.test(base64)) return 'expected whpk_ and the base64 of 32 bytes'
  const key = Buffer.concat([SPKI_PREFIX, Buffer.from(base64, 'base64')])
  try {
    return createPublicKey({ key, format: 'der', type: 'spki' })
  } catch {
    return 'it is not an Ed25519 key'
  }
}

/** Senders sign with the keys of a rotation. Anybody can send many more, and each check reads all of the content. */
const MOST_SIGNATURES = 8

/** Whether one of the first few signatures was made with the private part of one of the keys (RFC 8032). */
export function isSignedWith(keys: readonly KeyObject[], content: Uint8Array, signatures: readonly Buffer[]): boolean {
  const tried = signatures.slice(0, MOST_SIGNATURES)
  return keys.some((key) => tried.some((signature) => verify(null, content, key, signature)))
}
