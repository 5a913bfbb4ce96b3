import { IdempotencyError } from '../core/errors.js'
import { contentTypeOf, hasMembers, isJson, isMultipart, mediaTypeOf } from './content-type.js'
import type { RequestFacts } from './decision.js'
import { headerLines } from './header-lines.js'

/** What the rules ask of a request. */
type SentBody = Pick<RequestFacts, 'rawHeaders' | 'body' | 'bodyWasRead'>

/** A body was sent, and `req.body` shows nothing of it: it must never be taken for an empty one. */
export function isUnseen(facts: SentBody): boolean {
  return showsNothing(facts) && wasSent(facts)
}

/**
 * A request is compared by what `req.body` shows. `false`: that would be wrong, since the body has a content type that no
 * parser covers, which is the client's mistake.
 *
 * @throws IdempotencyError `body_not_parsed` or `fingerprint_required` where it would be wrong by the application's mistake.
 */
export function isComparable(facts: SentBody): boolean {
  const contentType = contentTypeOf(facts.rawHeaders)
  if (isMultipart(contentType)) throw multipartNeedsFingerprint()
  if (!isUnseen(facts)) return true
  if (facts.bodyWasRead) throw readElsewhere(contentType)
  if (hasMembers(contentType)) throw bodyNotParsed(contentType)
  return false
}

/**
 * For a `fingerprint` of the application's own, which may look at whatever a parser made.
 *
 * @throws IdempotencyError `body_not_parsed` where nobody has read the body yet.
 */
export function checkWasRead(facts: SentBody): void {
  if (!facts.bodyWasRead && isUnseen(facts)) throw notReadForFingerprint(contentTypeOf(facts.rawHeaders))
}

function showsNothing(facts: SentBody): boolean {
  const { body } = facts
  if (body === undefined || body === null) return true
  if (typeof body !== 'object' || Array.isArray(body) || body instanceof Uint8Array) return false
  return Object.keys(body).length === 0 && !mayBeAnEmptyObject(facts)
}

/**
 * Parsers of Express 4 leave `{}` behind wherever they did not run, also where something else has read the body, such as
 * into `req.rawBody`. So a body that was read counts as `{}` where that may be what was sent: not where a form or another
 * type than JSON brought more than the two bytes of it.
 */
function mayBeAnEmptyObject({ rawHeaders, bodyWasRead }: SentBody): boolean {
  if (!bodyWasRead) return false
  const type = mediaTypeOf(contentTypeOf(rawHeaders))
  return type === null || isJson(type) || (lengthOf(rawHeaders) <= 2 && !isChunked(rawHeaders))
}

function wasSent({ rawHeaders }: SentBody): boolean {
  return lengthOf(rawHeaders) !== 0 || isChunked(rawHeaders)
}

/** In bytes, as announced; 0: it was not. */
function lengthOf(rawHeaders: readonly string[]): number {
  const [length = '0'] = headerLines(rawHeaders, 'content-length')
  return Number(length)
}

function isChunked(rawHeaders: readonly string[]): boolean {
  return headerLines(rawHeaders, 'transfer-encoding').length > 0
}

function multipartNeedsFingerprint(): IdempotencyError {
  return new IdempotencyError(
    'fingerprint_required',
    'A multipart body reads differently on each try (its boundary is random). Give a `fingerprint(req)` that returns ' +
      'what makes two such requests the same, such as the fields and the hashes of the files.',
  )
}

function readElsewhere(contentType: string): IdempotencyError {
  return new IdempotencyError(
    'fingerprint_required',
    `The request has a body (${named(contentType)}) that was read, but \`req.body\` shows nothing of it: two different ` +
      'requests would look the same. Give a `fingerprint(req)` that returns what makes two such requests the same, such as ' +
      '`(req) => req.rawBody`, or have the body put into `req.body`.',
  )
}

/** The body has members, perhaps a key among them, and no parser has taken it apart. */
export function bodyNotParsed(contentType: string): IdempotencyError {
  return new IdempotencyError(
    'body_not_parsed',
    `The request has a body (${named(contentType)}) that nothing has parsed: two different requests would look the same, ` +
      'and a key in it would not be seen. Mount the parser of its content type before the middleware, such as ' +
      `\`${parserOf(contentType)}\`.`,
  )
}

function notReadForFingerprint(contentType: string): IdempotencyError {
  return new IdempotencyError(
    'body_not_parsed',
    `The request has a body (${named(contentType)}) that nothing has read yet, so \`fingerprint(req)\` could not see what is ` +
      'in it. Mount the parser of its content type before the middleware, such as `express.json()` or multer. A fingerprint ' +
      'that needs no body says so: `fingerprint: withoutBody((req) => …)`.',
  )
}

function parserOf(contentType: string): string {
  return isJson(mediaTypeOf(contentType) ?? '') ? 'express.json()' : 'express.urlencoded({ extended: true })'
}

function named(contentType: string): string {
  return mediaTypeOf(contentType) ?? 'without a valid content type'
}
