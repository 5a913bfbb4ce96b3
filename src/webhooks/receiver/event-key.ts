import { hash } from 'node:crypto'
import { keyFault } from '../../core/index.js'

/**
 * This prefix and the digest format are frozen within a major version: records made before an upgrade must still be
 * found.
 */
const DIGEST = 'webhook-id-sha256:'

/**
 * The key of an event: its id, unchanged (quotes belong to it, since it is not a header's value). An id that is not a
 * valid key, for example one of more than 255 characters, is replaced by its digest. So is an id that begins with the
 * digest's prefix: otherwise it could pose as another id's digest.
 */
export function eventKey(id: string): string {
  if (keyFault(id) === null && !id.startsWith(DIGEST)) return id
  return DIGEST + hash('sha256', id, 'base64url')
}
