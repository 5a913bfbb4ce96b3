import { IdempotencyError } from '../../core/errors.js'
import { digestOf } from '../../core/record/digest.js'

/**
 * The digest of what makes two requests the same: method, path, query and content; `null` if the content is nested
 * deeper than 1,000 levels. In your own receiver, another kind of operation can use a word that is not an HTTP method
 * as `method`, and its name as `target`.
 *
 * `target` is the path, with the query if it counts. JSON counts by value, with members in any order; bytes and strings
 * count by their bytes. `undefined` counts as `{}`: a missing body is `undefined` in Express 5 and `{}` in Express 4. A
 * member of the content named `ignoredMember` does not count.
 *
 * @throws IdempotencyError `fingerprint_required` for content without a JSON form, such as a Map. Nothing ran and
 * nothing was stored.
 */
export function requestFingerprint(
  method: string,
  target: string,
  content: unknown,
  ignoredMember?: string,
): string | null {
  // The length marks the end of the target, so no two requests produce the same prefix.
  const prefix = `${method} ${target.length} ${target}\n`
  const digest = digestOf(prefix, content === undefined ? {} : content, ignoredMember)
  if (typeof digest === 'string') return digest
  if (digest.fault === 'too_deep') return null
  throw new IdempotencyError(
    'fingerprint_required',
    `The request's body, or the result of \`fingerprint\`, contains ${digest.seen}, which has no JSON form to compare. ` +
      'Set a `fingerprint(req)` that returns what makes two such requests the same, as a JSON value, a string or bytes.',
  )
}
