import { Buffer } from 'node:buffer'
import { describeKind, optionRules, resolveOptions } from '../../core/index.js'
import { aHeaderName } from '../../http/index.js'
import {
  BASE64_SHA256,
  createKeysOption,
  HEX_SHA256,
  isRecent,
  isSignedBy,
  toleranceOption,
  UNIX_SECONDS,
  type VerifySignature,
} from './verify-signature.js'

export interface HmacSha256Options {
  /** The header with the signature; case does not matter. */
  readonly header: string
  /** The sender's signing secrets; several during a rotation. A string counts as its UTF-8 bytes. */
  readonly secrets: readonly (string | Uint8Array)[]
  /**
   * The encoding of the signature.
   * @default 'hex': the most common one
   */
  readonly encoding?: 'hex' | 'base64' | undefined
  /**
   * The text before the signature, for example `'sha256='`.
   * @default '': nothing
   */
  readonly prefix?: string | undefined
}

/**
 * Verifies HMAC-SHA256 (RFC 2104) over the body's bytes, in constant time.
 *
 * Such a signature has no timestamp: anybody who records a delivery can send it again at any time. While the event's
 * record is kept (`retentionMs`), that is a repeat and runs nothing; after that the handler runs again. Prefer
 * `standardWebhooks`.
 *
 * @example verify: hmacSha256({ header: 'X-Signature-256', secrets: [secret], prefix: 'sha256=' })
 * @throws IdempotencyError `options_invalid`, which lists every mistake and shows no secret; nothing was built.
 */
export function hmacSha256(options: HmacSha256Options): VerifySignature {
  const { header, secrets, encoding, prefix } = resolveOptions<ResolvedHmacOptions>(
    'hmacSha256()',
    options,
    HMAC_OPTIONS,
  )
  return createHmacVerifier(header, secrets.map(parseHmacSecret) as Uint8Array[], encoding, prefix)
}

/** The same, its options checked. */
function createHmacVerifier(
  header: string,
  secrets: readonly Uint8Array[],
  encoding: 'hex' | 'base64',
  prefix: string,
): VerifySignature {
  const name = header.toLowerCase()
  const form = encoding === 'hex' ? HEX_SHA256 : BASE64_SHA256

  return (raw, headers) => {
    const sent = headers[name]
    if (typeof sent !== 'string' || !sent.startsWith(prefix)) return false
    const text = sent.slice(prefix.length)
    return form.test(text) && isSignedBy(secrets, [raw], [Buffer.from(text, encoding)])
  }
}

const secretsOption = createKeysOption('secrets', parseHmacSecret)

const HMAC_OPTIONS = {
  secrets: secretsOption,
  header: { rule: aHeaderName, isRequired: true },
  encoding: { rule: optionRules.oneOf('hex', 'base64'), default: 'hex' },
  prefix: { rule: optionRules.aString, default: '' },
}

type ResolvedHmacOptions = { readonly [Name in keyof HmacSha256Options]-?: NonNullable<HmacSha256Options[Name]> }

function parseHmacSecret(secret: unknown): Uint8Array | string {
  if (typeof secret !== 'string' && !(secret instanceof Uint8Array)) {
    return `expected a string or bytes; seen: ${describeKind(secret)}`
  }
  if (secret.length === 0) return 'it is empty'
  if (typeof secret === 'string' && secret !== secret.trim()) {
    return 'it begins or ends with white space, such as the line end of its file: trim it, or give it as bytes'
  }
  return Buffer.from(secret) // A copy, because the caller may overwrite its bytes later.
}

export interface SenderSecrets {
  /** As the sender shows them, unchanged; several during a rotation. */
  readonly secrets: readonly (string | Uint8Array)[]
}

export interface StripeOptions extends SenderSecrets {
  /**
   * How far a delivery's timestamp may differ from this machine's clock, in either direction. Stripe signs each retry anew.
   * @default 300_000 (5 minutes), as in Stripe's libraries
   */
  readonly toleranceMs?: number | undefined
}

/**
 * Verifies Stripe's signatures (`Stripe-Signature`, scheme `v1`): HMAC-SHA256 over `t.body`, in constant time. A delivery whose
 * timestamp is outside the tolerance is refused.
 *
 * @example verify: stripeWebhooks({ secrets: ['whsec_…'] })
 * @throws IdempotencyError `options_invalid`, which lists every mistake and shows no secret; nothing was built.
 */
export function stripeWebhooks(options: StripeOptions): VerifySignature {
  const { secrets: given, toleranceMs } = resolveOptions<Required<SenderSecrets> & { readonly toleranceMs: number }>(
    'stripeWebhooks()',
    options,
    { secrets: createKeysOption('secrets', parseEndpointSecret), toleranceMs: toleranceOption },
  )
  const secrets = given.map(parseEndpointSecret) as Uint8Array[]
  return (raw, { 'stripe-signature': sent }) => {
    if (typeof sent !== 'string') return false
    // "t=1492774577,v1=5257a8…,v0=6ffbb5…": each element is a scheme and a value.
    const elements = sent.split(',').map((element) => element.trim().split('=', 2))
    const [timestamp, another] = elements.flatMap(([scheme, value = '']) => (scheme === 't' ? [value] : []))
    if (timestamp === undefined || another !== undefined) return false
    if (!UNIX_SECONDS.test(timestamp) || !isRecent(timestamp, toleranceMs)) return false
    const signatures = elements.flatMap(([scheme, value = '']) =>
      scheme === 'v1' && HEX_SHA256.test(value) ? [Buffer.from(value, 'hex')] : [],
    )
    return isSignedBy(secrets, [Buffer.from(`${timestamp}.`), raw], signatures)
  }
}

/** With an API key in its place each delivery would be refused. */
function parseEndpointSecret(secret: unknown): Uint8Array | string {
  const isApiKey = typeof secret === 'string' && /^[srp]k_/.test(secret)
  return isApiKey ? "expected the endpoint's signing secret (whsec_…), not an API key" : parseHmacSecret(secret)
}

/**
 * Verifies GitHub's signatures (`X-Hub-Signature-256`): HMAC-SHA256 over the body, in constant time. They have no timestamp: see
 * `hmacSha256`. What GitHub names the delivery (`X-GitHub-Delivery`) and the event is not signed.
 *
 * @example verify: githubWebhooks({ secrets: [secret] })
 * @throws IdempotencyError `options_invalid`, which lists every mistake and shows no secret; nothing was built.
 */
export function githubWebhooks(options: SenderSecrets): VerifySignature {
  const { secrets } = resolveOptions<SenderSecrets>('githubWebhooks()', options, { secrets: secretsOption })
  return createHmacVerifier('x-hub-signature-256', secrets.map(parseHmacSecret) as Uint8Array[], 'hex', 'sha256=')
}

/**
 * Verifies Shopify's signatures (`X-Shopify-Hmac-Sha256`): HMAC-SHA256 over the body in base64, in constant time. They have no
 * timestamp: see `hmacSha256`. What Shopify names the event (`X-Shopify-Event-Id`) and its topic is not signed.
 *
 * @example verify: shopifyWebhooks({ secrets: [clientSecret] })
 * @throws IdempotencyError `options_invalid`, which lists every mistake and shows no secret; nothing was built.
 */
export function shopifyWebhooks(options: SenderSecrets): VerifySignature {
  const { secrets } = resolveOptions<SenderSecrets>('shopifyWebhooks()', options, { secrets: secretsOption })
  return createHmacVerifier('x-shopify-hmac-sha256', secrets.map(parseHmacSecret) as Uint8Array[], 'base64', '')
}
