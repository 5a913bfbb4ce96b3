import { Buffer } from 'node:buffer'
import { kindOf, type OptionRule, optionRules } from '../../core/index.js'
import { aHeaderName } from '../../http/index.js'
import { withKeys } from './secrets.js'
import { BASE64_SHA256, HEX_SHA256, isSignedBy, type VerifySignature } from './verify-signature.js'

export interface HmacSha256Options {
  /** The header with the signature; case does not matter. */
  readonly header: string
  /** The sender's signing secrets; several during a rotation. A string counts as its UTF-8 bytes. */
  readonly secrets: readonly (string | Uint8Array)[]
  /**
   * The encoding of the signature.
   * @default 'hex': the most common one
   */
  readonly encoding?: 'hex' | 'base64'
  /**
   * The text before the signature, for example `'sha256='`.
   * @default '': nothing
   */
  readonly prefix?: string
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
  const { header, secrets, encoding = 'hex', prefix = '' } = withKeys('hmacSha256()', options, RULES, keyOf)
  return hmacOf({ header, secrets, encoding, prefix })
}

/** The same, its options checked. */
export function hmacOf({
  header,
  secrets,
  encoding,
  prefix,
}: Required<HmacSha256Options> & { readonly secrets: readonly Uint8Array[] }): VerifySignature {
  const name = header.toLowerCase()
  const form = encoding === 'hex' ? HEX_SHA256 : BASE64_SHA256

  return (raw, headers) => {
    const sent = headers[name]
    if (typeof sent !== 'string' || !sent.startsWith(prefix)) return false
    const text = sent.slice(prefix.length)
    return form.test(text) && isSignedBy(secrets, [raw], [Buffer.from(text, encoding)])
  }
}

const RULES: Readonly<Record<string, OptionRule>> = {
  header: aHeaderName,
  encoding: optionRules.oneOf('hex', 'base64'),
  prefix: optionRules.aString,
}

/** Returns the key, or what is wrong with the secret. */
export function keyOf(secret: unknown): Uint8Array | string {
  if (typeof secret !== 'string' && !(secret instanceof Uint8Array)) {
    return `expected a string or bytes; seen: ${kindOf(secret)}`
  }
  if (secret.length === 0) return 'it is empty'
  return Buffer.from(secret) // A copy, because the caller may overwrite its bytes later.
}
