import { kindOf } from '../../core/errors.js'
import type { LegacyKey } from '../options/body-field.js'
import { type KeyReading, readKey } from './key.js'

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
