/** The published texts that an API can follow by name. */
export type ProfileName = 'ietfDraft07' | 'agenticCommerce' | 'universalCommerce'

/** What a published text asks of idempotency keys, as options: `profile: ietfDraft07`. */
export interface Profile {
  readonly name: ProfileName
}

/**
 * The IETF draft, version 07 (draft-ietf-httpapi-idempotency-key-header): another request under the key is 422, and errors
 * below 500 are replayed, but for 408, 425, 429 and 499. Set `documentation` with it, and `required: true` on routes that need a key.
 *
 * @example idempotency({ store, scope, profile: ietfDraft07, documentation: 'https://developer.example.com/idempotency' })
 */
export const ietfDraft07: Profile = Object.freeze({ name: 'ietfDraft07' })

/**
 * The Agentic Commerce Protocol, version 2026-04-17, for checkouts and delegated payments: each POST needs a key, which
 * belongs to its path and is echoed; another body is 422; answers below 500 are replayed; problems have its flat form.
 */
export const agenticCommerce: Profile = Object.freeze({ name: 'agenticCommerce' })

/**
 * The Universal Commerce Protocol, as of August 2026: a key belongs to its path, another body is 409, answers below 500 but 408, 425, 429
 * and 499 are replayed, for 48 hours.
 */
export const universalCommerce: Profile = Object.freeze({ name: 'universalCommerce' })

/** What only profiles have. */
export interface ProfileTraits {
  /** Whether the same key on another path is another operation. */
  readonly keyPerPath: boolean
  /** Whether each response has the key in the header in which it was sent. */
  readonly echoesKey: boolean
}

export const NO_TRAITS: ProfileTraits = { keyPerPath: false, echoesKey: false }
