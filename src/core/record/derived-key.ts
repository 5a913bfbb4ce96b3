import { hash } from 'node:crypto'
import { IdempotencyError, kindOf } from '../errors.js'
import type { Identity } from './identity.js'

/** Frozen within a major version, because other services store these keys. Held by golden files. */
const FORMAT = 'once-per-key derived key v1'

/**
 * What `deriveKey(label)` returns to the handler of that operation: a UUID from the identity and the label, by RFC 9562
 * §5.8, version 8, "custom UUIDs … based on a hash".
 *
 * @throws IdempotencyError `label_invalid`: the label is empty, or no string.
 */
export function derivedKey(identity: Identity, label: string): string {
  if (typeof label !== 'string' || label === '') {
    const seen = label === '' ? 'an empty string' : kindOf(label)
    throw new IdempotencyError(
      'label_invalid',
      `deriveKey needs a label that names the call, such as 'bank transfer'; seen: ${seen}.`,
    )
  }
  const { namespace, scope, key, fingerprint } = identity
  // One more part than a request's identity, so the two never collide.
  const space = namespace === undefined ? [] : [namespace]
  const hex = hash('sha256', JSON.stringify([FORMAT, ...space, scope, key, fingerprint, label]), 'hex')
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
