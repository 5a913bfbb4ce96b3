import { hash } from 'node:crypto'
import { keyFault } from '../../core/index.js'

/** Frozen within a major version, with what follows it: records made before an upgrade must still be found. */
const DIGEST = 'webhook-id-sha256:'

/**
 * The key of an event: its id as it is, for an id is no header's value, and its quotes belong to it. One that no key can
 * be, such as one of more than 255 characters, is kept by its digest; so is one that begins like a digest, which no id may
 * pass for.
 */
export function eventKey(id: string): string {
  if (keyFault(id) === null && !id.startsWith(DIGEST)) return id
  return DIGEST + hash('sha256', id, 'base64url')
}
