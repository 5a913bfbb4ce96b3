import { buildErrorPageHint, IdempotencyError } from '../../core/errors.js'
import {
  getContentType,
  getFirstHeaderLine,
  type HeaderSource,
  hasMembers,
  isJson,
  isMultipart,
  parseMediaType,
  type RequestFacts,
} from './facts.js'

type BodyFacts = Pick<RequestFacts, 'rawHeaders' | 'headers' | 'body' | 'bodyWasRead' | 'bodyIsEmpty'>

/** Whether a body was sent that `req.body` does not show: it must never be treated as empty. */
export function isBodyUnseen(facts: BodyFacts): boolean {
  return hasNoParsedBody(facts) && wasSent(facts) && facts.bodyIsEmpty !== true
}

/**
 * Whether the request can be compared by `req.body`. `false`: no parser covers the body's content type, which is the
 * client's mistake.
 *
 * @throws IdempotencyError `body_not_parsed` or `fingerprint_required` if the application made the mistake.
 */
export function isBodyComparable(facts: BodyFacts): boolean {
  const contentType = getContentType(facts)
  if (isMultipart(contentType)) throw multipartFingerprintError()
  if (!isBodyUnseen(facts)) return true
  if (facts.bodyWasRead) throw bodyReadElsewhereError(contentType)
  if (hasMembers(contentType)) throw bodyNotParsedError(contentType)
  return false
}

/**
 * For the application's own `fingerprint`, which may use any parser's result.
 *
 * @throws IdempotencyError `body_not_parsed` if nobody has read the body yet.
 */
export function assertBodyWasRead(facts: BodyFacts): void {
  if (!facts.bodyWasRead && isBodyUnseen(facts)) throw bodyNotReadError(getContentType(facts))
}

function hasNoParsedBody(facts: BodyFacts): boolean {
  const { body } = facts
  if (body === undefined || body === null) return true
  if (typeof body !== 'object' || Array.isArray(body) || body instanceof Uint8Array) return false
  return isEmpty(body) && !mayBeAnEmptyObject(facts)
}

/** Without a list of all names: most bodies have some. */
function isEmpty(body: object): boolean {
  for (const name in body) if (Object.hasOwn(body, name)) return false
  return true
}

/**
 * Express 4's parsers set `{}` if they did not run, even if something else read the body, for example into
 * `req.rawBody`. So `{}` counts as the body only if the body was read and may really have been `{}`: not if a form, or
 * another type than JSON, had another length.
 */
function mayBeAnEmptyObject(facts: BodyFacts): boolean {
  if (!facts.bodyWasRead) return false
  const type = parseMediaType(getContentType(facts))
  return type === null || isJson(type) || !mayHaveContent(facts)
}

function wasSent(facts: BodyFacts): boolean {
  return readContentLength(facts) !== 0 || isChunked(facts)
}

/** Whether the body that was sent may be more than nothing, and more than `{}`. */
export function mayHaveContent(head: HeaderSource): boolean {
  return isChunked(head) || ![0, 2].includes(readContentLength(head))
}

/** In bytes, as announced; 0 if it was not. */
function readContentLength(head: HeaderSource): number {
  return Number(getFirstHeaderLine(head, 'content-length') ?? '0')
}

function isChunked(head: HeaderSource): boolean {
  return getFirstHeaderLine(head, 'transfer-encoding') !== undefined
}

function multipartFingerprintError(): IdempotencyError {
  return new IdempotencyError(
    'fingerprint_required',
    'A multipart body differs on each retry, because its boundary is random. Set a `fingerprint(req)` that returns ' +
      'what makes two such requests the same, such as the fields and the hashes of the files.',
  )
}

function bodyReadElsewhereError(contentType: string): IdempotencyError {
  return new IdempotencyError(
    'fingerprint_required',
    `The request has a body (${describeContentType(contentType)}) that was read, but \`req.body\` does not contain it: two different ` +
      'requests would look the same. Set a `fingerprint(req)` that returns what makes two such requests the same, such as ' +
      '`(req) => req.rawBody ?? req.body ?? null`, or put the body into `req.body`.',
  )
}

/** The body has members, perhaps with a key, but no parser has read it. */
export function bodyNotParsedError(contentType: string): IdempotencyError {
  return new IdempotencyError(
    'body_not_parsed',
    `The request has a body (${describeContentType(contentType)}) that no parser has read: two different requests would look the same, ` +
      'and a key in it would be missed. Mount the parser of its content type before the middleware, such as ' +
      `\`${suggestParser(contentType)}\`.`,
  )
}

function bodyNotReadError(contentType: string): IdempotencyError {
  return new IdempotencyError(
    'body_not_parsed',
    `The request has a body (${describeContentType(contentType)}) that nothing has read yet, so \`fingerprint(req)\` could not see its ` +
      'content. Mount the parser of its content type before the middleware, such as `express.json()` or multer. For a fingerprint ' +
      'that does not use the body: `fingerprint: withoutBody((req) => …)`.',
  )
}

function suggestParser(contentType: string): string {
  return isJson(parseMediaType(contentType) ?? '') ? 'express.json()' : 'express.urlencoded({ extended: true })'
}

function describeContentType(contentType: string): string {
  return parseMediaType(contentType) ?? 'without a valid content type'
}

/** Limits the warnings and the set, because clients choose the types. */
const MOST_WARNINGS = 20

const warnedOf = new Set<string>()

/** The detail for a client whose content type no parser covers. */
export function buildUnsupportedDetail(contentType: string): string {
  const type = parseMediaType(contentType)
  if (type !== null) return `This API does not accept bodies of the content type ${type}.`
  return contentType === ''
    ? 'The request has a body, but no Content-Type header.'
    : 'The Content-Type header is not a valid media type.'
}

/** Warns once per type and process: it may be the application's mistake, which would otherwise go unnoticed. */
export function warnOfUnsupported(contentType: string): void {
  const type = parseMediaType(contentType)
  const name = type ?? 'without a valid content type'
  if (warnedOf.has(name) || warnedOf.size >= MOST_WARNINGS) return
  warnedOf.add(name)
  const bodies = type === null ? 'Bodies without a valid content type are' : `Bodies of the content type ${type} are`
  const parser = type === null ? 'express.raw({ type: () => true })' : `express.raw({ type: '${type}' })`
  const last = warnedOf.size < MOST_WARNINGS ? '' : ' Further types will be refused without a warning.'
  process.emitWarning(
    `${bodies} refused with 415 content_type_unsupported: no parser has read them before the idempotency middleware, so two ` +
      `different requests would look the same. To accept them, mount their parser before it, such as ${parser}.${last} ${buildErrorPageHint('content_type_unsupported')}`,
    { type: 'OncePerKeyWarning', code: 'ONCE_PER_KEY_CONTENT_TYPE_UNSUPPORTED' },
  )
}
