import { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { kindOf, type OptionRule, optionRules } from '../../core/index.js'
import { withKeys } from './secrets.js'
import { BASE64_SHA256, isSignedBy, type VerifySignature } from './verify-signature.js'

export interface StandardWebhooksOptions {
  /**
   * As the sender shows them: `whsec_` and the base64 of at least 24 bytes, or the base64 alone; several while one is being
   * replaced.
   */
  readonly secrets: readonly string[]
  /**
   * How far the sender's clock and the time of a delivery may be from this clock, both ways. A sender signs each try anew.
   * @default 300_000 (5 minutes), as the standard's libraries do
   */
  readonly toleranceMs?: number
}

/**
 * Verifies symmetric signatures of Standard Webhooks 1.0 (`v1`): HMAC-SHA256 over `webhook-id.webhook-timestamp.body`, in
 * constant time. A delivery whose timestamp is out of tolerance is refused. The headers may have the names that the standard
 * grew out of, too: `svix-id`, `svix-timestamp` and `svix-signature`.
 *
 * By default the event's own `id` names the record, not the header `webhook-id`, and stands in the signed body: a recorded
 * delivery can be sent under no other id, whatever its headers say, and one that is sent again in time is a repeat. Both
 * hold for the id in the header too, which is signed: a `parse` may go by it.
 *
 * @example verify: standardWebhooks({ secrets: [secret] })
 * @throws IdempotencyError `options_invalid`, which lists every mistake and shows no secret; nothing was built.
 */
export function standardWebhooks(options: StandardWebhooksOptions): VerifySignature {
  const { secrets, toleranceMs = 300_000 } = withKeys('standardWebhooks()', options, RULES, keyOf)

  return (raw, headers) => {
    const { id, timestamp, list } = signedHeaders(headers)
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

/** Under either name. An id that nobody signed must not stand beside the signed one, where a `parse` might read it. */
function signedHeaders(headers: IncomingHttpHeaders) {
  const { 'webhook-id': id, 'svix-id': svixId = id } = headers
  const prefix = headers['webhook-signature'] === undefined ? 'svix' : 'webhook'
  return {
    id: (id ?? svixId) === svixId ? svixId : undefined,
    timestamp: headers[`${prefix}-timestamp`],
    list: headers[`${prefix}-signature`],
  }
}

/** "integer unix timestamp (seconds since epoch)" */
const UNIX_SECONDS = /^\d{1,12}$/

const RULES: Readonly<Record<string, OptionRule>> = {
  toleranceMs: optionRules.anInteger(1, Number.MAX_SAFE_INTEGER),
}

/** "Random. At least 24 bytes (192 bits, 512 maximum)" */
const LEAST_SECRET_BYTES = 24

/** Padded or not. One character too many would be no byte: a secret cut down to it would be a key that everybody knows. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}={0,2}|[A-Za-z0-9+/]{3}=?)?$/

function keyOf(secret: unknown): Uint8Array | string {
  if (typeof secret !== 'string') return `expected a string; seen: ${kindOf(secret)}`
  const base64 = secret.replace(/^whsec_/, '')
  if (base64 === '') return 'it is empty'
  if (!BASE64.test(base64)) return 'expected base64, with or without whsec_ before it'
  const key = Buffer.from(base64, 'base64')
  if (key.length >= LEAST_SECRET_BYTES) return key
  return `expected at least ${LEAST_SECRET_BYTES} bytes in base64, so that nobody can guess it; seen: ${key.length}`
}
