import { kindOf } from '../core/errors.js'
import { type KeyReading, readKey } from './key.js'

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

/** `null` if the field is absent (or `null`). */
export function readLegacyKey(legacy: LegacyKey, body: unknown): KeyReading | null {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, legacy.field)) return null
  const value = (body as Record<string, unknown>)[legacy.field]
  if (value === null || value === undefined) return null
  if (typeof value !== 'string') {
    return { invalid: `the body's ${JSON.stringify(legacy.field)} is ${kindOf(value)}, not a string` }
  }
  return readKey(value)
}

/**
 * Headers of every response to a request with the field, whichever key counts. Computed once, when the options are
 * read.
 */
export function deprecationHeaders(legacy: LegacyKey): readonly (readonly [name: string, value: string])[] {
  const headers: [string, string][] = [
    // RFC 9745 §2: "The value of the Deprecation HTTP response header field … MUST be a Date as per RFC 9651".
    ['Deprecation', `@${Math.floor(legacy.deprecatedSince.getTime() / 1000)}`],
  ]
  if (legacy.sunset !== undefined) headers.push(['Sunset', legacy.sunset.toUTCString()])
  if (legacy.link !== undefined) headers.push(['Link', `<${legacy.link}>; rel="deprecation"`])
  return headers
}
