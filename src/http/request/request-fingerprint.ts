import { describeCause, IdempotencyError } from '../../core/errors.js'
import { type MaybePromise, whenever } from '../../core/maybe-promise.js'
import { computeDigest, ONLY_PLAIN } from '../../core/record/digest.js'
import { callOption, isWithoutBody, type ResolvedOptions } from '../options/options.js'
import type { Rejection } from '../options/problem.js'
import { getContentType, isJson, type RequestFacts } from './facts.js'
import { TOO_MANY_FIELDS_DETAIL } from './request-body.js'
import { assertBodyWasRead, buildUnsupportedDetail, isBodyComparable, warnOfUnsupported } from './sent-body.js'

export interface RejectedRequest {
  readonly kind: 'rejected'
  readonly code: Rejection
  readonly detail?: string | undefined
}

/**
 * Returns a reader of fingerprints, by the options: of method, path, query and body, or with what `fingerprint` returns
 * instead of the last two.
 *
 * The reader throws IdempotencyError for misuse by the application: nothing ran and nothing was stored.
 */
export function createFingerprintReader<Req>(
  options: Pick<ResolvedOptions<Req>, 'fingerprint' | 'legacyKey'>,
): (facts: RequestFacts<Req>) => MaybePromise<string | RejectedRequest> {
  const { fingerprint, legacyKey } = options
  const ignoredMember = legacyKey?.field
  if (fingerprint === undefined) return (facts) => computeBodyFingerprint(facts, ignoredMember)
  const looksAtBody = !isWithoutBody(fingerprint)
  return (facts) => {
    if (looksAtBody && facts.bodyFault === 'too_large') return TOO_LARGE
    if (looksAtBody) assertBodyWasRead(facts)
    // The result of `fingerprint` replaces the query as well.
    return whenever(callOption(fingerprint, facts.request, readFingerprintContent, fingerprintFailedError), (content) =>
      toFingerprintOrRejection(
        computeRequestFingerprint(facts.method, stripQuery(facts.target), content, ignoredMember),
      ),
    )
  }
}

function computeBodyFingerprint(facts: RequestFacts, ignoredMember: string | undefined): string | RejectedRequest {
  if (facts.bodyFault === 'too_large') return TOO_LARGE
  if (facts.bodyFault === 'too_many_fields') return TOO_MANY_FIELDS
  if (facts.bodyFault === 'nothing_seen') return NOTHING_SEEN
  if (isMalformedJson(facts)) return MALFORMED
  if (!isBodyComparable(facts)) {
    const contentType = getContentType(facts)
    warnOfUnsupported(contentType)
    return { kind: 'rejected', code: 'content_type_unsupported', detail: buildUnsupportedDetail(contentType) }
  }
  return toFingerprintOrRejection(computeRequestFingerprint(facts.method, facts.target, facts.body, ignoredMember))
}

/** Its handler could not read it either, and a corrected one may follow under its key. */
function isMalformedJson(facts: RequestFacts): boolean {
  return facts.bodyFault === 'malformed' && isJson(getContentType(facts)) && !isReadAsJson(facts.body)
}

/** As `request.json()` reads bytes: those that are no UTF-8 become U+FFFD, so they are no reason to refuse it. */
function isReadAsJson(body: unknown): boolean {
  try {
    JSON.parse(new TextDecoder().decode(body as Uint8Array))
    return true
  } catch {
    return false
  }
}

const MALFORMED: RejectedRequest = { kind: 'rejected', code: 'body_malformed' }
export const NOTHING_SEEN: RejectedRequest = {
  ...MALFORMED,
  detail: 'Nothing can be read of the body. Send it with content, or without a body.',
}
export const TOO_LARGE: RejectedRequest = { kind: 'rejected', code: 'body_too_large' }
export const TOO_MANY_FIELDS: RejectedRequest = { ...TOO_LARGE, detail: TOO_MANY_FIELDS_DETAIL }

function toFingerprintOrRejection(print: string | null): string | RejectedRequest {
  return print === null ? { kind: 'rejected', code: 'body_too_deep' } : print
}

function readFingerprintContent(content: unknown): unknown {
  if (content !== undefined) return content
  throw new IdempotencyError('fingerprint_invalid', `fingerprint() returned undefined. ${WAY_OUT}`)
}

function fingerprintFailedError(cause: unknown): IdempotencyError {
  return new IdempotencyError('fingerprint_invalid', `fingerprint() failed${describeCause(cause)}. ${WAY_OUT}`, {
    cause,
  })
}

const WAY_OUT =
  'It must return what makes two requests the same, as a JSON value, a string or bytes; null if only method and path count.'

export function stripQuery(target: string): string {
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

/**
 * The digest of what makes two requests the same: method, path, query and content; `null` if the content is nested
 * deeper than 1,000 levels. In your own receiver, another kind of operation can use a word that is not an HTTP method
 * as `method`, and its name as `target`.
 *
 * `target` is the path, with the query if it counts. JSON counts by value, with members in any order; bytes and strings
 * count by their bytes. `undefined` counts as `{}`: a missing body is `undefined` in Express 5 and `{}` in Express 4. A
 * member of the content named `ignoredMember` does not count.
 *
 * @throws IdempotencyError `fingerprint_required` for content without a JSON form, such as a Map or an object of a class.
 * Nothing ran and nothing was stored.
 */
export function computeRequestFingerprint(
  method: string,
  target: string,
  content: unknown,
  ignoredMember?: string,
): string | null {
  const digest = computeDigest(content === undefined ? {} : content, ignoredMember, method, target)
  if (typeof digest === 'string') return digest
  if (digest.fault === 'too_deep') return null
  if (isStream(content)) throw streamFingerprintError()
  throw new IdempotencyError(
    'fingerprint_required',
    `The request's body, or the result of \`fingerprint\`, contains ${digest.seen}, which has no JSON form to compare. ` +
      `${ONLY_PLAIN} Set a \`fingerprint(req)\` that returns what makes two such requests the same, as a JSON value, a string or bytes.`,
  )
}

/** Of Node or of the web: what passes a body on unread, such as @fastify/http-proxy, puts one into `req.body`. */
function isStream(content: unknown): boolean {
  const { pipe, getReader } = Object(content)
  return typeof pipe === 'function' || typeof getReader === 'function'
}

function streamFingerprintError(): IdempotencyError {
  return new IdempotencyError(
    'fingerprint_required',
    "The request's body is a stream that nobody has read, as behind a proxy, so two different requests would look the same. Compare " +
      "something else, such as a digest that the client sends: `fingerprint: withoutBody((req) => req.headers['content-digest'] ?? null)`.",
  )
}
