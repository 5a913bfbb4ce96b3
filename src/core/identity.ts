import { Buffer } from 'node:buffer'
import { consult } from './consult.js'
import type { HeaderPairs, RequestFacts } from './decision.js'
import { IdempotencyError } from './errors.js'
import { fingerprintOf, TOO_DEEP } from './fingerprint.js'
import { type KeyReading, readKeyLines } from './key.js'
import { deprecationHeaders, readLegacyKey } from './legacy-key.js'
import type { ResolvedOptions } from './options.js'
import type { ProblemCode } from './problem.js'
import { resolveScope } from './scope.js'
import { type Soon, whenever } from './soon.js'

/** What a record is found by, and bound to. */
export interface Identity {
  /** Keeps what is no request apart from requests: a word without a colon; absent for requests. */
  readonly namespace?: 'webhook'
  readonly scope: string
  readonly key: string
  readonly fingerprint: string
}

/** What a request is to the library: not covered, refused as sent, or an operation with a name. */
export type Identified =
  | { readonly kind: 'bypass' }
  | {
      readonly kind: 'rejected'
      readonly code: Extract<ProblemCode, 'key_missing' | 'key_invalid' | 'body_too_deep'>
      readonly detail?: string
      readonly extraHeaders?: HeaderPairs
    }
  | { readonly kind: 'identified'; readonly identity: Identity; readonly extraHeaders?: HeaderPairs }

const BYPASS: Identified = { kind: 'bypass' }

/**
 * Reads requests by the rules of the options: which are covered, whose they are, what makes two the same.
 *
 * The reader throws IdempotencyError for misuse by the application: nothing ran and nothing was stored.
 */
export function identityReader<Req>(options: ResolvedOptions<Req>): (facts: RequestFacts<Req>) => Soon<Identified> {
  const { header, required, legacyKey, scope, fingerprint } = options
  const methods = new Set(options.methods)
  const headerName = header.toLowerCase()
  const deprecation = legacyKey && deprecationHeaders(legacyKey)

  return function identityOf(facts) {
    if (!methods.has(facts.method)) return BYPASS
    const lines = headerLines(facts.rawHeaders, headerName)
    const legacy = (legacyKey && readLegacyKey(legacyKey, facts.body)) ?? null
    if (lines.length === 0 && legacy === null && !required && !mayHideKey(facts)) return BYPASS
    if (options.skip === undefined) return covered(facts, lines, legacy)
    return whenever(consult(options.skip, facts.request, Boolean, skipFailed), (isSkipped) =>
      isSkipped ? BYPASS : covered(facts, lines, legacy),
    )
  }

  function covered(facts: RequestFacts<Req>, lines: readonly string[], legacy: KeyReading | null): Soon<Identified> {
    const fromHeader = lines.length > 0
    const reading = fromHeader ? readKeyLines(lines) : legacy
    const extra = !fromHeader && deprecation !== undefined ? { extraHeaders: deprecation } : undefined
    if (reading === null) {
      if (mayHideKey(facts)) throw bodyNotParsed()
      return {
        kind: 'rejected',
        code: 'key_missing',
        detail: `Send the header ${header}, with a value of your own choice that is new for each operation.`,
      }
    }
    if ('invalid' in reading) {
      const place = fromHeader ? `The header ${header} is not a key: ` : 'The key in the body is not one: '
      return { kind: 'rejected', code: 'key_invalid', detail: `${place}${reading.invalid}.`, ...extra }
    }
    if (fromHeader && legacyKey?.whenBoth === 'reject' && legacy !== null && !sameKey(reading, legacy)) {
      const detail = `The header ${header} and the body's ${JSON.stringify(legacyKey.field)} differ; send one of them.`
      return { kind: 'rejected', code: 'key_invalid', detail }
    }

    return whenever(resolveScope(scope, facts.request), (owner) =>
      whenever(fingerprintOfRequest(facts), (print) => {
        if (print === TOO_DEEP) return { kind: 'rejected', code: 'body_too_deep', ...extra }
        return { kind: 'identified', identity: { scope: owner, key: reading.key, fingerprint: print }, ...extra }
      }),
    )
  }

  /** JSON, or a form, that no parser has taken apart: the key may be in it, and would not be seen. */
  function mayHideKey(facts: RequestFacts<Req>): boolean {
    if (legacyKey === undefined || !HAS_FIELDS.test(contentTypeOf(facts))) return false
    const { body } = facts
    if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body).includes(legacyKey.field)
    return isUnread(facts) || (body === undefined && lengthOf(facts) > 0)
  }

  function fingerprintOfRequest(facts: RequestFacts<Req>): Soon<string | typeof TOO_DEEP> {
    const { method, target } = facts
    if (fingerprint === undefined) {
      checkBody(facts)
      return fingerprintOf(method, target, facts.body, legacyKey?.field)
    }
    // The given value stands for the query as well.
    return whenever(consult(fingerprint, facts.request, checkedContent, fingerprintFailed), (content) =>
      fingerprintOf(method, pathOf(target), content, legacyKey?.field),
    )
  }
}

/** The values of a header, one for each line. */
function headerLines(rawHeaders: readonly string[], name: string): readonly string[] {
  let lines: string[] | undefined
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const each = rawHeaders[i] as string
    if (each.length !== name.length || each.toLowerCase() !== name) continue
    lines ??= []
    lines.push(rawHeaders[i + 1] as string)
  }
  return lines ?? NO_LINES
}

const NO_LINES: readonly string[] = []

function skipFailed(cause: unknown): IdempotencyError {
  return new IdempotencyError(
    'skip_failed',
    'skip() failed, so it is not known whether the request is to be protected. It must answer true or false.',
    { cause },
  )
}

function sameKey(a: KeyReading, b: KeyReading): boolean {
  return 'key' in a && 'key' in b && a.key === b.key
}

function checkedContent(content: unknown): unknown {
  if (content !== undefined) return content
  throw new IdempotencyError('fingerprint_invalid', `fingerprint() answered undefined. ${FINGERPRINT_WAY_OUT}`)
}

function fingerprintFailed(cause: unknown): IdempotencyError {
  return new IdempotencyError('fingerprint_invalid', `fingerprint() failed. ${FINGERPRINT_WAY_OUT}`, { cause })
}

const FINGERPRINT_WAY_OUT =
  'It must return what makes two requests the same, as a JSON value, a string or bytes; null if nothing but method and path counts.'

function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

/** A body that nobody read, or that reads differently each time, would make every request the same, or none. */
function checkBody(facts: RequestFacts): void {
  if (/^\s*multipart\//i.test(contentTypeOf(facts))) {
    throw new IdempotencyError(
      'fingerprint_required',
      'A multipart body reads differently on each try (its boundary is random). Give a `fingerprint(req)` that returns ' +
        'what makes two such requests the same, such as the fields and the hashes of the files.',
    )
  }
  if (isUnread(facts)) throw bodyNotParsed()
}

/** JSON or a form. */
const HAS_FIELDS = /^\s*application\/(?:(?:[^;\s]*\+)?json|x-www-form-urlencoded)\s*(?:;|$)/i

function contentTypeOf({ rawHeaders }: RequestFacts): string {
  const [contentType = ''] = headerLines(rawHeaders, 'content-type')
  return contentType
}

/** A body was sent, and no parser has read it. */
function isUnread(facts: RequestFacts): boolean {
  if (facts.bodyWasRead || !isEmpty(facts.body)) return false
  return lengthOf(facts) !== 0 || headerLines(facts.rawHeaders, 'transfer-encoding').length > 0
}

/** In bytes, as announced; 0: it was not. */
function lengthOf({ rawHeaders }: RequestFacts): number {
  const [length = '0'] = headerLines(rawHeaders, 'content-length')
  return Number(length)
}

function bodyNotParsed(): IdempotencyError {
  return new IdempotencyError(
    'body_not_parsed',
    'The request has a body, but nothing has read it: two different requests would look the same, and a key in it would not ' +
      'be seen. Mount the parser of its content type before the middleware, such as `express.json()`, and answer other ' +
      'content types with 415 there.',
  )
}

/** What parsers leave behind where they did not run: Express 5 `undefined`, Express 4 `{}`. */
function isEmpty(body: unknown): boolean {
  if (body === undefined || body === null) return true
  return (
    typeof body === 'object' && !Array.isArray(body) && !(body instanceof Uint8Array) && Object.keys(body).length === 0
  )
}
