import { Buffer } from 'node:buffer'
import { createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { checkOptions, describeKind, type OptionRule } from '../../core/index.js'

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

/** The options with their secrets converted to keys. Messages name the kind of a wrong secret, never its value. */
export function resolveSecrets<Options extends { readonly secrets: readonly unknown[] }>(
  of: string,
  options: Options,
  rules: Readonly<Record<string, OptionRule>>,
  keyOf: (secret: unknown) => Uint8Array | string,
  terms: { readonly isOptional?: boolean; readonly more?: readonly string[] } = {},
): Omit<Options, 'secrets'> & { readonly secrets: readonly Uint8Array[] } {
  const { secrets, ...others } = Object(options) as Options
  const keys = Array.isArray(secrets) ? Array.from(secrets, (secret) => keyOf(secret)) : [] // With what its holes are.
  const more = keys.flatMap((key, index) => (typeof key === 'string' ? [`secrets[${index}]: ${key}`] : []))
  const required = ['header', ...(terms.isOptional ? [] : ['secrets'])]
  const allRules = { secrets: someKeys('secret'), ...rules } // The first one is the example where no options are given.
  checkOptions(of, options, { ...others, secrets }, allRules, { required, more: [...more, ...(terms.more ?? [])] })
  return { ...others, secrets: keys as Uint8Array[] }
}

/** An option rule: an array that is not empty, whose values are never shown. */
export function someKeys(what: string): OptionRule {
  return (value) => {
    if (Array.isArray(value) && value.length > 0) return null
    return {
      expected: `an array of at least one ${what}`,
      seen: Array.isArray(value) ? 'an empty array' : describeKind(value),
    }
  }
}

/** The base64 of the 64 bytes of an Ed25519 signature, padded. */
export const BASE64_ED25519 = /^[A-Za-z0-9+/]{86}==$/

/** RFC 8410 §4: the SubjectPublicKeyInfo of an Ed25519 key, before its 32 bytes. */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

/** Returns the key, or what is wrong with it: `whpk_` and the base64 of its 32 bytes, or only the base64. */
export function parsePublicKey(given: unknown): KeyObject | string {
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
