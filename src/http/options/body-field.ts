/** A deprecated place for the key: a member of the JSON body. Made by `bodyField`. */
export interface LegacyKey extends BodyFieldOptions {
  readonly field: string
}

export interface BodyFieldOptions {
  /** Since when the field is deprecated: the `Deprecation` header (RFC 9745). */
  readonly deprecatedSince: Date
  /** When the field stops working: the `Sunset` header (RFC 8594). */
  readonly sunset?: Date
  /** A page about it for clients: a `Link` with `rel="deprecation"` (RFC 9745 §3). */
  readonly link?: string
  /**
   * What happens if both the header and the field are there and differ. `'reject'`: 400 `key_invalid`. `'field'`: the
   * field wins; use it if an SDK adds its own header to every call, so that the field keeps working. `'header'`: the
   * header wins; use it if clients identify the operation in the header and something else in the field.
   * @default 'reject': two keys for one operation are a mistake, and a wrong guess would run it twice
   */
  readonly whenBoth?: 'reject' | 'field' | 'header'
}

/**
 * The key in a member of the JSON body, for clients that do not send the header yet. It never counts in the
 * fingerprint, so a client can change from field to header between two retries.
 *
 * @example
 * idempotency({ store, scope, legacyKey: bodyField('idempotencyKey', { deprecatedSince: new Date('2026-01-01') }) })
 */
export function bodyField(field: string, options: BodyFieldOptions): LegacyKey {
  return { field, ...options }
}
