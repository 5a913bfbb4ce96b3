import { createHmac } from 'node:crypto'
import type { Attributes } from '@opentelemetry/api'

/** Scope and key as hashed attributes; none without a secret. */
export function hasher(
  secret: string | undefined,
): (about: { readonly scope: string; readonly key: string }) => Attributes {
  if (secret === undefined) return () => ({})
  const hash = (text: string): string => createHmac('sha256', secret).update(text).digest('hex')
  return ({ scope, key }) => ({ 'once_per_key.scope.hash': hash(scope), 'once_per_key.key.hash': hash(key) })
}
