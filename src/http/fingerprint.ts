import { digestOf } from '../core/digest.js'
import { IdempotencyError } from '../core/errors.js'

/**
 * What makes two requests the same: the digest of method, path, query and content; `null`: the content is nested deeper than
 * 1,000 levels. For a receiver of one's own, any other kind of operation can have a word for a method that no request has, and
 * what names it for a target.
 *
 * `target` is the path, with the query where it counts. JSON counts by value, with members in any order; bytes and strings count
 * by their bytes. `undefined` is `{}`: a missing body is the one in Express 5, the other in Express 4. A member of the content
 * named `ignoredMember` does not count.
 *
 * @throws IdempotencyError `fingerprint_required` for content that has no JSON form to compare, such as a Map. Nothing ran and
 * nothing was stored.
 */
export function requestFingerprint(
  method: string,
  target: string,
  content: unknown,
  ignoredMember?: string,
): string | null {
  // The length delimits the target, so no two requests share a prefix.
  const prefix = `${method} ${target.length} ${target}\n`
  const digest = digestOf(prefix, content === undefined ? {} : content, ignoredMember)
  if (typeof digest === 'string') return digest
  if (digest.fault === 'too_deep') return null
  throw new IdempotencyError(
    'fingerprint_required',
    `The request's body, or what \`fingerprint\` made of it, holds ${digest.seen}, which has no JSON form to compare. ` +
      'Give a `fingerprint(req)` that returns what makes two such requests the same, as a JSON value, a string or bytes.',
  )
}
