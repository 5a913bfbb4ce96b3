import { Buffer } from 'node:buffer'
import { describeCause, describeKind, IdempotencyError } from '../../core/errors.js'
import { ignoreRejection, type MaybePromise, whenever } from '../../core/maybe-promise.js'
import { engineOptions } from '../../core/options/engine-options.js'
import { findFirstSentFault, findScopeFault, type Identity } from '../../core/record/identity.js'
import { callOption, type LegacyKey, type ResolvedOptions } from '../options/options.js'
import { getContentType, type HeaderPairs, hasMembers, type RequestFacts } from './facts.js'
import {
  buildDeprecationHeaders,
  findKeyHeader,
  type KeyHeader,
  type KeyReading,
  readKeyHeader,
  readLegacyKey,
} from './key.js'
import {
  createFingerprintReader,
  NOTHING_SEEN,
  type RejectedRequest,
  stripQuery,
  TOO_LARGE,
  TOO_MANY_FIELDS,
} from './request-fingerprint.js'
import { bodyNotParsedError, isBodyUnseen } from './sent-body.js'

/** What a request is: not covered, refused, or an operation with an identity. */
export type IdentityReading =
  | { readonly kind: 'bypass' }
  | (RejectedRequest & { readonly extraHeaders?: HeaderPairs | undefined })
  | { readonly kind: 'identified'; readonly identity: Identity; readonly extraHeaders?: HeaderPairs | undefined }

type RequestIdentifier<Req> = (facts: RequestFacts<Req>) => MaybePromise<IdentityReading>

const BYPASS: IdentityReading = { kind: 'bypass' }

/**
 * Returns a reader of requests, by the options: whether they are covered, their scope and key, their fingerprint, and when they
 * were first sent.
 *
 * The reader throws IdempotencyError for misuse by the application: nothing ran and nothing was stored.
 */
export function createRequestIdentifier<Req>(options: ResolvedOptions<Req>): RequestIdentifier<Req> {
  const identityOf = createUndatedIdentifier(options)
  if (options.firstSent === undefined) return identityOf
  const firstSentOf = createFirstSentReader(options.firstSent, options.clockSkewMs)
  return (facts) => whenever(identityOf(facts), (one) => addFirstSent(one, firstSentOf, facts.request))
}

function createUndatedIdentifier<Req>(options: ResolvedOptions<Req>): RequestIdentifier<Req> {
  const { header, required, legacyKey, scope, skip } = options
  const methods = new Set(options.methods)
  const headerName = header.toLowerCase()
  const deprecation = legacyKey && buildDeprecationHeaders(legacyKey)
  const whenBoth = legacyKey?.whenBoth ?? 'reject'
  const scopeOf = createScopeReader(scope)
  const fingerprintOf = createFingerprintReader(options)
  // By the function, not by its result: a merchant may be named so.
  const naming = { isOnlyScope: (scope as () => unknown) === singleTenant, keyPerPath: options.keyPerPath }

  return function identityOf(facts) {
    if (!methods.has(facts.method)) return BYPASS
    const inHeader = findKeyHeader(facts, headerName)
    const legacy = (legacyKey && readLegacyKey(legacyKey, facts.body)) ?? null
    if (inHeader === null && legacy === null && !required && !mayHideKey(legacyKey, facts)) return BYPASS
    return skip === undefined
      ? identifyCovered(facts, inHeader, legacy)
      : identifyUnlessSkipped(skip, facts, inHeader, legacy)
  }

  function identifyUnlessSkipped(
    skip: NonNullable<typeof options.skip>,
    facts: RequestFacts<Req>,
    inHeader: KeyHeader | null,
    legacy: KeyReading | null,
  ): MaybePromise<IdentityReading> {
    return whenever(callOption(skip, facts.request, Boolean, skipFailedError), (isSkipped) =>
      isSkipped ? BYPASS : identifyCovered(facts, inHeader, legacy),
    )
  }

  function identifyCovered(
    facts: RequestFacts<Req>,
    inHeader: KeyHeader | null,
    legacy: KeyReading | null,
  ): MaybePromise<IdentityReading> {
    if (mayHideKey(legacyKey, facts) && (inHeader === null || whenBoth !== 'header')) return rejectHiddenKey(facts)
    const reading = readRequestKey(inHeader, legacy, options)
    if (reading === null) return rejectMissingKey(header)
    const ofLegacy = legacy === null ? undefined : deprecation
    if ('invalid' in reading) {
      return { kind: 'rejected', code: 'key_invalid', detail: reading.invalid, extraHeaders: ofLegacy }
    }
    const { key } = reading
    const extraHeaders = options.echoesKey
      ? [...(ofLegacy ?? []), ...buildEchoHeaders(header, String(inHeader?.values[0] ?? key))]
      : ofLegacy
    const scope = scopeOf(facts.request)
    if (scope instanceof Promise) return awaitIdentityReading(scope, key, facts, fingerprintOf, extraHeaders, naming)
    const fingerprint = fingerprintOf(facts)
    return fingerprint instanceof Promise
      ? awaitIdentityReading(scope, key, facts, () => fingerprint, extraHeaders, naming)
      : toIdentityReading(scope, key, facts, fingerprint, extraHeaders, naming)
  }
}

function rejectMissingKey(header: string): RejectedRequest {
  const detail = `Send the header ${header}, with a value that you choose: a new one for each operation, and the same one for each retry of it.`
  return { kind: 'rejected', code: 'key_missing', detail }
}

interface IdentityTraits {
  readonly isOnlyScope: boolean
  readonly keyPerPath: boolean
}

/** The key in its header, as it was sent; one in the body may have characters that no header can have. */
function buildEchoHeaders(header: string, key: string): HeaderPairs {
  return /^[\x20-\x7e\x80-\xff]+$/.test(key) ? [[header, key]] : []
}

/** Whether the body is JSON or a form that no parser has read: it may contain the key, which would be missed. */
function mayHideKey(legacyKey: LegacyKey | undefined, facts: RequestFacts): boolean {
  if (legacyKey === undefined || !hasMembers(getContentType(facts))) return false
  const { body } = facts
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body).includes(legacyKey.field)
  return facts.bodyFault === 'too_large' || facts.bodyFault === 'too_many_fields' || isBodyUnseen(facts)
}

/** @throws IdempotencyError `body_not_parsed`, where it is not the client's mistake. */
function rejectHiddenKey(facts: RequestFacts): IdentityReading {
  switch (facts.bodyFault) {
    case 'too_large':
      return TOO_LARGE
    case 'too_many_fields':
      return TOO_MANY_FIELDS
    case 'nothing_seen':
      return NOTHING_SEEN
    case 'malformed':
      return { kind: 'rejected', code: 'key_invalid', detail: 'The body is malformed, so a key in it cannot be read.' }
    case undefined:
      throw bodyNotParsedError(getContentType(facts))
  }
}

function toIdentityReading(
  scope: string,
  key: string,
  facts: RequestFacts,
  fingerprint: string | RejectedRequest,
  extraHeaders: HeaderPairs | undefined,
  { isOnlyScope, keyPerPath }: IdentityTraits,
): IdentityReading {
  if (typeof fingerprint === 'string') {
    const identity = { scope, key, path: keyPerPath ? stripQuery(facts.target) : undefined, fingerprint, isOnlyScope }
    return { kind: 'identified', identity, extraHeaders }
  }
  return { ...fingerprint, extraHeaders }
}

/** The fingerprint is not asked for before there is a scope. */
async function awaitIdentityReading<Req>(
  scope: MaybePromise<string>,
  key: string,
  facts: RequestFacts<Req>,
  fingerprintOf: (facts: RequestFacts<Req>) => MaybePromise<string | RejectedRequest>,
  extraHeaders: HeaderPairs | undefined,
  naming: IdentityTraits,
): Promise<IdentityReading> {
  return toIdentityReading(await scope, key, facts, await fingerprintOf(facts), extraHeaders, naming)
}

/** With the time at which it was first sent, if it is covered and has a key. */
function addFirstSent<Req>(
  identified: IdentityReading,
  firstSentOf: (request: Req) => FirstSentReading,
  request: Req,
): IdentityReading {
  if (identified.kind !== 'identified') return identified
  const { identity, extraHeaders } = identified
  const reading = firstSentOf(request)
  if ('fault' in reading) {
    const detail = `It is not known when the request was first sent, and so whether its key has expired: ${reading.fault}.`
    return { kind: 'rejected', code: 'key_invalid', detail, extraHeaders }
  }
  return { kind: 'identified', identity: { ...identity, firstSent: reading.firstSent }, extraHeaders }
}

function skipFailedError(cause: unknown): IdempotencyError {
  return new IdempotencyError(
    'skip_failed',
    `skip() failed${describeCause(cause)}. So it is unknown whether to protect the request. It must return true or false.`,
    { cause },
  )
}

/** The key of a request, from the header or the deprecated field. `null` if it has neither. */
function readRequestKey(
  header: KeyHeader | null,
  legacy: KeyReading | null,
  { header: name, legacyKey }: Pick<ResolvedOptions<never>, 'header' | 'legacyKey'>,
): KeyReading | null {
  if (header === null || (legacy !== null && legacyKey?.whenBoth === 'field')) {
    return legacy && prefixInvalidReason(legacy, 'The key in the body is not one')
  }
  const inHeader = readKeyHeader(header)
  if ('invalid' in inHeader) return prefixInvalidReason(inHeader, `The header ${name} is not a key`)
  if (legacy === null || legacyKey?.whenBoth === 'header') return inHeader
  if ('invalid' in legacy) return prefixInvalidReason(legacy, 'The key in the body is not one')
  if (legacy.key === inHeader.key) return inHeader
  return {
    invalid: `The header ${name} and the body's ${JSON.stringify(legacyKey?.field)} differ; send one of them.`,
  }
}

function prefixInvalidReason(reading: KeyReading, place: string): KeyReading {
  return 'invalid' in reading ? { invalid: `${place}: ${reading.invalid}.` } : reading
}

/** When it was first sent; `fault`: what is wrong with what the client says. */
export type FirstSentReading = { readonly firstSent: Date | undefined } | { readonly fault: string }

/**
 * Returns a reader of the time at which a request was first sent, by an application's option.
 *
 * The reader throws IdempotencyError `first_sent_failed`: nothing ran and nothing was stored.
 */
export function createFirstSentReader<Req>(
  firstSent: (request: Req) => Date | undefined,
  clockSkewMs: number = engineOptions.clockSkewMs.default,
): (request: Req) => FirstSentReading {
  return (request) => {
    let given: unknown
    try {
      given = firstSent(request)
    } catch (cause) {
      throw firstSentFailedError(`failed${describeCause(cause)}`, cause)
    }
    if (given === undefined) return { firstSent: undefined }
    if (!(given instanceof Date)) {
      ignoreRejection(given)
      throw firstSentFailedError(`returned ${describeKind(given)}`)
    }
    const fault = findFirstSentFault(given, clockSkewMs)
    return fault === null ? { firstSent: given } : { fault }
  }
}

function firstSentFailedError(what: string, cause?: unknown): IdempotencyError {
  return new IdempotencyError(
    'first_sent_failed',
    `firstSent() ${what}. It must return a Date, or undefined if it is unknown when the operation was first sent; an invalid ` +
      'date refuses the request.',
    { cause },
  )
}

/**
 * The scope of an application with a single tenant. It must be chosen explicitly: as a default it would leak one
 * merchant's answers to another.
 */
export function singleTenant(): string {
  return 'single-tenant'
}

/** An option function that returns the account whose key it is. */
export type Scope<Req> = (request: Req) => string | null | undefined | Promise<string | null | undefined>

/** How error messages refer to a scope. */
export interface ScopeWords {
  readonly option: string
  /** What to do about a wrong one, in sentences. */
  readonly wayOut: string
}

/**
 * Returns a reader of the scope, by an application's option. No value is coerced. `words` is for a binding or a
 * receiver whose option has another name.
 *
 * The reader throws IdempotencyError (or rejects with it) `scope_invalid`: nothing ran and nothing was stored.
 */
export function createScopeReader<Req>(
  scope: Scope<Req>,
  { option, wayOut }: ScopeWords = OF_REQUESTS,
): (request: Req) => MaybePromise<string> {
  const checked = (given: unknown): string => {
    const fault = findScopeFault(given)
    if (fault === null) return given as string
    const isNumber = Number.isFinite(given) || typeof given === 'bigint'
    const its = isNumber ? `${fault}: return String(id)` : fault
    throw new IdempotencyError('scope_invalid', `${option}() returned ${its}. ${wayOut}`)
  }
  const failed = (cause: unknown) =>
    new IdempotencyError('scope_invalid', `${option}() failed${describeCause(cause)}. ${wayOut}`, { cause })
  return (request) => callOption(scope, request, checked, failed)
}

const OF_REQUESTS: ScopeWords = {
  option: 'scope',
  wayOut:
    'It must return the account whose key this is, as a string of 1 to 255 characters: mount authentication before the ' +
    'middleware, and respond there to requests without an account. An application with a single tenant uses `scope: singleTenant`.',
}
