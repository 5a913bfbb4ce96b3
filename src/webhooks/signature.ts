import { Buffer } from 'node:buffer'
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { kindOf } from '../core/errors.js'
import {
  aHeaderName,
  aString,
  mistakesIn,
  oneOf,
  optionsInvalid,
  type Rule,
  refuseMistakes,
  refuseNonObject,
  wholeNumber,
} from '../core/validation.js'

/**
 * Says whether a delivery comes from its sender: `true` or `false`, for the body's bytes as they were sent and the
 * request's headers, with names in lower case.
 */
export type Verify = (raw: Buffer, headers: IncomingHttpHeaders) => boolean | Promise<boolean>

/** The same, at once. */
export type VerifySignature = (raw: Buffer, headers: IncomingHttpHeaders) => boolean

export interface HmacSha256Options {
  /** The header that carries the signature, in any case. */
  readonly header: string
  /** What the sender signs with; several while one is being replaced. A string counts as its bytes in UTF-8. */
  readonly secrets: readonly (string | Uint8Array)[]
  /**
   * How the signature is written.
   * @default 'hex': what most senders write
   */
  readonly encoding?: 'hex' | 'base64'
  /**
   * What stands before the signature, such as `'sha256='`.
   * @default '': nothing
   */
  readonly prefix?: string
}

/**
 * Verifies HMAC-SHA256 (RFC 2104) over the body's bytes, in constant time.
 *
 * Such a signature has no date: whoever records a delivery can send it again at any time. While the event's record is
 * kept (`retentionMs`), that is a repeat, which runs nothing; after that it runs again. Prefer `standardWebhooks`.
 *
 * @example verify: hmacSha256({ header: 'X-Signature-256', secrets: [secret], prefix: 'sha256=' })
 * @throws IdempotencyError `options_invalid`, which lists every mistake and shows no secret; nothing was built.
 */
export function hmacSha256(options: HmacSha256Options): VerifySignature {
  const { header, secrets, encoding = 'hex', prefix = '' } = checked('hmacSha256()', options, HMAC_RULES, keyOfText)
  const name = header.toLowerCase()
  const form = encoding === 'hex' ? HEX_SHA256 : BASE64_SHA256

  return (raw, headers) => {
    const sent = headers[name]
    if (typeof sent !== 'string' || !sent.startsWith(prefix)) return false
    const text = sent.slice(prefix.length)
    return form.test(text) && isSignedBy(secrets, [raw], [Buffer.from(text, encoding)])
  }
}

export interface StandardWebhooksOptions {
  /** As the sender shows them: `whsec_` and base64, or the base64 alone; several while one is being replaced. */
  readonly secrets: readonly string[]
  /**
   * How far the sender's clock and the time of a delivery may be from this clock, both ways. A sender signs each try anew.
   * @default 300_000 (5 minutes), as the standard's libraries do
   */
  readonly toleranceMs?: number
}

/**
 * Verifies symmetric signatures of Standard Webhooks 1.0 (`v1`): HMAC-SHA256 over `webhook-id.webhook-timestamp.body`, in
 * constant time. A delivery whose timestamp is out of tolerance is refused.
 *
 * The event's own `id` names the record, not the header `webhook-id`, and stands in the signed body: a recorded delivery
 * can be sent under no other id, whatever its headers say, and one that is sent again in time is a repeat.
 *
 * @example verify: standardWebhooks({ secrets: [secret] })
 * @throws IdempotencyError `options_invalid`, which lists every mistake and shows no secret; nothing was built.
 */
export function standardWebhooks(options: StandardWebhooksOptions): VerifySignature {
  const { secrets, toleranceMs = 300_000 } = checked('standardWebhooks()', options, STANDARD_RULES, keyOfWhsec)

  return (raw, headers) => {
    const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': list } = headers
    if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof list !== 'string') return false
    if (id === '' || !UNIX_SECONDS.test(timestamp)) return false
    const ageSeconds = Math.floor(Date.now() / 1_000) - Number(timestamp)
    if (Math.abs(ageSeconds) * 1_000 > toleranceMs) return false
    // "space delimited list of signatures", each with its version; those of other versions are not for this key.
    const signatures = list
      .split(' ')
      .filter((one) => one.startsWith('v1,') && BASE64_SHA256.test(one.slice(3)))
      .map((one) => Buffer.from(one.slice(3), 'base64'))
    // Node reads headers as Latin-1: this gives the id's bytes back as they were signed.
    return isSignedBy(secrets, [Buffer.from(`${id}.${timestamp}.`, 'latin1'), raw], signatures)
  }
}

/** Whether one of the signatures, 32 bytes each, is one of the keys'. How long it takes tells neither which nor how much. */
function isSignedBy(keys: readonly Uint8Array[], parts: readonly Uint8Array[], signatures: readonly Buffer[]): boolean {
  let found = false
  for (const key of keys) {
    const hmac = createHmac('sha256', key)
    for (const part of parts) hmac.update(part)
    const expected = hmac.digest()
    for (const signature of signatures) found = timingSafeEqual(signature, expected) || found
  }
  return found
}

const HEX_SHA256 = /^[0-9a-f]{64}$/i
const BASE64_SHA256 = /^[A-Za-z0-9+/]{43}=$/
/** "integer unix timestamp (seconds since epoch)" */
const UNIX_SECONDS = /^\d{1,12}$/

const STANDARD_RULES: Readonly<Record<string, Rule>> = {
  toleranceMs: wholeNumber(1, Number.MAX_SAFE_INTEGER),
}

const HMAC_RULES: Readonly<Record<string, Rule>> = {
  header: aHeaderName,
  encoding: oneOf('hex', 'base64'),
  prefix: aString,
}

/** The options with their secrets as keys. Mistakes name the kind of a secret, never the secret. */
function checked<Options extends { readonly secrets: readonly unknown[] }>(
  of: string,
  options: Options,
  rules: Readonly<Record<string, Rule>>,
  keyOf: (secret: unknown) => Uint8Array | string,
): Omit<Options, 'secrets'> & { readonly secrets: readonly Uint8Array[] } {
  refuseNonObject(of, options)
  const { secrets, ...others } = options
  const mistakes = mistakesIn(options, others, { ...rules, secrets: () => null }, ['header'])
  if (!Array.isArray(secrets) || secrets.length === 0) {
    const seen = Array.isArray(secrets) ? 'an empty array' : kindOf(secrets)
    throw optionsInvalid(of, [...mistakes, `secrets: expected an array of at least one secret; seen: ${seen}`])
  }
  const keys = secrets.map(keyOf)
  keys.forEach((key, index) => {
    if (typeof key === 'string') mistakes.push(`secrets[${index}]: ${key}`)
  })
  refuseMistakes(of, mistakes)
  return { ...others, secrets: keys as Uint8Array[] }
}

/** The key, or what is wrong with the secret. */
function keyOfText(secret: unknown): Uint8Array | string {
  if (typeof secret !== 'string' && !(secret instanceof Uint8Array)) {
    return `expected a string or bytes; seen: ${kindOf(secret)}`
  }
  if (secret.length === 0) return 'it is empty'
  return Buffer.from(secret) // A copy: bytes that the caller overwrites later stay the key.
}

/** Padded or not. One character too many would be no byte: a secret cut down to it would be a key that everybody knows. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}={0,2}|[A-Za-z0-9+/]{3}=?)?$/

function keyOfWhsec(secret: unknown): Uint8Array | string {
  if (typeof secret !== 'string') return `expected a string; seen: ${kindOf(secret)}`
  const base64 = secret.replace(/^whsec_/, '')
  if (base64 === '') return 'it is empty'
  if (!BASE64.test(base64)) return 'expected base64, with or without whsec_ before it'
  return Buffer.from(base64, 'base64')
}
