import { Buffer } from 'node:buffer'
import type { KeyObject } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { describeKind, resolveOptions } from '../../core/index.js'
import {
  BASE64_ED25519,
  BASE64_SHA256,
  createKeysOption,
  isRecent,
  isSignedBy,
  isSignedWith,
  parseWebhookPublicKey,
  toleranceOption,
  UNIX_SECONDS,
  type VerifySignature,
} from './verify-signature.js'

export interface StandardWebhooksOptions {
  /**
   * As the sender shows them: the base64 of at least 24 bytes, with or without `whsec_`. Several during a rotation.
   * @default none: only `publicKeys`
   */
  readonly secrets?: readonly string[] | undefined
  /**
   * The sender's Ed25519 public keys (`v1a`): the base64 of 32 bytes, with or without `whpk_`. Several during a
   * rotation. With both, a signature of either kind is enough.
   * @default none: only `secrets`
   */
  readonly publicKeys?: readonly string[] | undefined
  /**
   * How far a delivery's timestamp may differ from this machine's clock.
   * @default 300_000 (5 minutes), as in the standard's libraries
   */
  readonly toleranceMs?: number | undefined
}

/**
 * Verifies signatures of Standard Webhooks 1.0 over `webhook-id.webhook-timestamp.body`: HMAC-SHA256 (`v1`, in constant time)
 * and Ed25519 (`v1a`). A delivery whose timestamp is outside the tolerance is refused. The headers may also have the names
 * used before the standard: `svix-id`, `svix-timestamp` and `svix-signature`.
 *
 * By default the record's key is the event's own `id`, not the header `webhook-id`. The `id` is part of the signed
 * body, so a recorded delivery cannot be sent under another id; sent again within the tolerance, it is a repeat. Both
 * are also true of the id in the header, which is signed too: a `parse` may use it.
 *
 * @example verify: standardWebhooks({ secrets: [secret] })
 * @throws IdempotencyError `options_invalid`, which lists every mistake and shows no secret; nothing was built.
 */
export function standardWebhooks(options: StandardWebhooksOptions): VerifySignature {
  const { secrets, publicKeys, toleranceMs } = readOptions(options)

  return (raw, headers) => {
    const { id, timestamp, list } = readSignedHeaders(headers)
    if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof list !== 'string') return false
    if (id === '' || BEYOND_LATIN_1.test(id) || !UNIX_SECONDS.test(timestamp)) return false
    if (!isRecent(timestamp, toleranceMs)) return false
    // Node reads headers as Latin-1: this restores the bytes that were signed.
    const head = Buffer.from(`${id}.${timestamp}.`, 'latin1')
    return (
      isSignedBy(secrets, [head, raw], parseSignatures(list, 'v1,', BASE64_SHA256)) ||
      (publicKeys.length > 0 &&
        isSignedWith(publicKeys, Buffer.concat([head, raw]), parseSignatures(list, 'v1a,', BASE64_ED25519)))
    )
  }
}

/** Some platforms read headers as UTF-8. Of such a character one byte would count: another id could pass for the signed one. */
const BEYOND_LATIN_1 = /[\u0100-\uffff]/

/** "space delimited list of signatures", each with its version; other versions use other keys. */
function parseSignatures(list: string, version: string, form: RegExp): Buffer[] {
  return list
    .split(' ')
    .filter((one) => one.startsWith(version) && form.test(one.slice(version.length)))
    .map((one) => Buffer.from(one.slice(version.length), 'base64'))
}

function readOptions(options: StandardWebhooksOptions) {
  const { secrets, publicKeys, toleranceMs } = resolveOptions<StandardWebhooksOptions & { toleranceMs: number }>(
    'standardWebhooks()',
    options,
    {
      secrets: createKeysOption('secrets', parseBase64Secret, Object(options).publicKeys === undefined),
      publicKeys: createKeysOption('publicKeys', parseWebhookPublicKey, false),
      toleranceMs: toleranceOption,
    },
  )
  return {
    secrets: (secrets ?? []).map(parseBase64Secret) as Uint8Array[],
    publicKeys: (publicKeys ?? []).map(parseWebhookPublicKey) as KeyObject[],
    toleranceMs,
  }
}

/**
 * Reads the headers under either name. If both ids are present they must be equal: `parse` might read the unsigned one.
 */
function readSignedHeaders(headers: IncomingHttpHeaders) {
  const { 'webhook-id': id, 'svix-id': svixId = id } = headers
  const prefix = headers['webhook-signature'] === undefined ? 'svix' : 'webhook'
  return {
    id: (id ?? svixId) === svixId ? svixId : undefined,
    timestamp: headers[`${prefix}-timestamp`],
    list: headers[`${prefix}-signature`],
  }
}

/** "Random. At least 24 bytes (192 bits, 512 maximum)" */
const LEAST_SECRET_BYTES = 24

/**
 * With or without padding. Strict, because Buffer.from() stops at the first invalid character: a mistyped secret would
 * become a short key that can be guessed.
 */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}={0,2}|[A-Za-z0-9+/]{3}=?)?$/

function parseBase64Secret(secret: unknown): Uint8Array | string {
  if (typeof secret !== 'string') return `expected a string; seen: ${describeKind(secret)}`
  const base64 = secret.replace(/^whsec_/, '')
  if (base64 === '') return 'it is empty'
  if (!BASE64.test(base64)) return 'expected base64, with or without the prefix whsec_'
  const key = Buffer.from(base64, 'base64')
  if (key.length >= LEAST_SECRET_BYTES) return key
  return `expected at least ${LEAST_SECRET_BYTES} bytes in base64, so that nobody can guess it; seen: ${key.length}`
}
