import { Buffer } from 'node:buffer'
import { optionRules } from '../../core/index.js'
import { hmacOf, keyOf } from './hmac-sha256.js'
import { withKeys } from './secrets.js'
import { HEX_SHA256, isRecent, isSignedBy, UNIX_SECONDS, type VerifySignature } from './verify-signature.js'

export interface SenderSecrets {
  /** As the sender shows them, unchanged; several during a rotation. */
  readonly secrets: readonly (string | Uint8Array)[]
}

export interface StripeOptions extends SenderSecrets {
  /**
   * How far a delivery's timestamp may differ from this machine's clock, in either direction. Stripe signs each retry anew.
   * @default 300_000 (5 minutes), as in Stripe's libraries
   */
  readonly toleranceMs?: number
}

/**
 * Verifies Stripe's signatures (`Stripe-Signature`, scheme `v1`): HMAC-SHA256 over `t.body`, in constant time. A delivery whose
 * timestamp is outside the tolerance is refused.
 *
 * @example verify: stripeWebhooks({ secrets: ['whsec_…'] })
 * @throws IdempotencyError `options_invalid`, which lists every mistake and shows no secret; nothing was built.
 */
export function stripeWebhooks(options: StripeOptions): VerifySignature {
  const { secrets, toleranceMs = 300_000 } = withKeys('stripeWebhooks()', options, STRIPE_RULES, endpointKeyOf)
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
function endpointKeyOf(secret: unknown): Uint8Array | string {
  const isApiKey = /^[srp]k_/.test(String(secret))
  return isApiKey ? "expected the endpoint's signing secret (whsec_…), not an API key" : keyOf(secret)
}

const STRIPE_RULES = { toleranceMs: optionRules.anInteger(1, Number.MAX_SAFE_INTEGER) }

/**
 * Verifies GitHub's signatures (`X-Hub-Signature-256`): HMAC-SHA256 over the body, in constant time. They have no timestamp: see
 * `hmacSha256`. What GitHub names the delivery (`X-GitHub-Delivery`) and the event is not signed.
 *
 * @example verify: githubWebhooks({ secrets: [secret] })
 * @throws IdempotencyError `options_invalid`, which lists every mistake and shows no secret; nothing was built.
 */
export function githubWebhooks(options: SenderSecrets): VerifySignature {
  const { secrets } = withKeys('githubWebhooks()', options, {}, keyOf)
  return hmacOf({ header: 'x-hub-signature-256', secrets, encoding: 'hex', prefix: 'sha256=' })
}

/**
 * Verifies Shopify's signatures (`X-Shopify-Hmac-Sha256`): HMAC-SHA256 over the body in base64, in constant time. They have no
 * timestamp: see `hmacSha256`. What Shopify names the event (`X-Shopify-Event-Id`) and its topic is not signed.
 *
 * @example verify: shopifyWebhooks({ secrets: [clientSecret] })
 * @throws IdempotencyError `options_invalid`, which lists every mistake and shows no secret; nothing was built.
 */
export function shopifyWebhooks(options: SenderSecrets): VerifySignature {
  const { secrets } = withKeys('shopifyWebhooks()', options, {}, keyOf)
  return hmacOf({ header: 'x-shopify-hmac-sha256', secrets, encoding: 'base64', prefix: '' })
}
