import type { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { describeCause, describeKind, IdempotencyError, type MaybePromise } from '../../core/index.js'
import { computeRequestFingerprint } from '../../http/index.js'
import { formatPath, type WebhookEventIssue } from '../events/event-error.js'

/** What `parse` returns for a delivery. Further members are passed to the handler unchanged. */
export interface ParsedEvent {
  /**
   * Identifies the event: the same in each delivery of it. Choose an id that the signature covers, if there is one: a
   * recorded delivery can be sent again under any id that the signature does not cover.
   */
  readonly id: string
  /** The kind of event: selects the handler in `on`. */
  readonly type: string
  /** The content of the event. */
  readonly payload: unknown
  /**
   * What makes two deliveries the same, besides the id: with the same id and another fingerprint, a delivery is refused
   * with 409. Any JSON value, string or bytes; for example the part of the payload that does not change between retries.
   * @default none: only the id counts, because senders change counters between retries
   */
  readonly fingerprint?: unknown
}

/**
 * Reads a delivery: the body's raw bytes, and the request's headers, with names in lower case.
 *
 * If it throws a `SyntaxError` (as JSON.parse does) or an error with `issues` (as schemas do), the delivery is refused
 * with 400. Any other error is passed to `next` as `parse_failed`.
 */
export type ParseDelivery<Event extends ParsedEvent> = (
  raw: Buffer,
  headers: IncomingHttpHeaders,
) => Event | Promise<Event>

/**
 * The result of `parse` for a delivery, or why it is refused.
 *
 * @throws IdempotencyError `parse_failed`: nothing ran and nothing was stored.
 */
async function callParse(
  parse: ParseDelivery<ParsedEvent>,
  raw: Buffer,
  headers: IncomingHttpHeaders,
): Promise<DeliveryReading> {
  let answer: unknown
  try {
    answer = await parse(raw, headers)
  } catch (error) {
    return createParseRefusal(error)
  }
  return toDeliveryReading(answer)
}

function toDeliveryReading(answer: unknown): DeliveryReading {
  if (typeof answer !== 'object' || answer === null) {
    throw new IdempotencyError('parse_failed', `parse() returned ${describeKind(answer)}. ${WAY_OUT}`)
  }
  const event = answer as ParsedEvent
  const issues = [...findIdIssues(event.id), ...findTypeIssues(event.type)]
  if (issues.length > 0) return { refusal: 'event_invalid', issues, of: event }
  // 'parsed event' and the empty path keep it apart from all other fingerprints: no HTTP method has this name.
  const fingerprint = computeRequestFingerprint('parsed event', '', event.fingerprint ?? null)
  return { refusal: null, event, id: event.id, type: event.type, fingerprint }
}

function findIdIssues(id: unknown): WebhookEventIssue[] {
  if (typeof id === 'string' && id !== '' && id.isWellFormed()) return []
  return [{ path: 'id', message: `expected a string that is not empty; seen: ${describeId(id)}` }]
}

function describeId(id: unknown): string {
  if (id === undefined) return 'nothing'
  if (id === '') return 'an empty string'
  return typeof id === 'string' ? 'a string with a lone surrogate' : describeKind(id)
}

function findTypeIssues(type: unknown): WebhookEventIssue[] {
  if (typeof type === 'string') return []
  return [{ path: 'type', message: `expected a string; seen: ${type === undefined ? 'nothing' : describeKind(type)}` }]
}

function createParseRefusal(thrown: unknown): DeliveryReading {
  if (thrown instanceof SyntaxError) return { refusal: 'body_malformed' }
  const issues = toIssues(thrown)
  if (issues !== null) return { refusal: 'event_invalid', issues, of: undefined }
  throw new IdempotencyError('parse_failed', `parse() failed${describeCause(thrown)}. ${WAY_OUT}`, { cause: thrown })
}

/** What is wrong with a delivery, according to an application's function that threw; `null`: the function itself failed. */
export function toIssues(thrown: unknown): WebhookEventIssue[] | null {
  const { issues } = (thrown ?? {}) as { readonly issues?: unknown }
  return Array.isArray(issues) ? issues.map(toIssue) : null
}

/** An issue in the form of Standard Schema: a path is a list of keys, or of objects with a `key`. */
function toIssue(given: unknown): WebhookEventIssue {
  const { path = [], message } = (given ?? {}) as { readonly path?: unknown; readonly message?: unknown }
  const steps = Array.isArray(path) ? path.map((step) => (step as { key?: PropertyKey } | null)?.key ?? step) : [path]
  return { path: formatPath(steps as PropertyKey[]), message: String(message) }
}

const WAY_OUT =
  'It must return { id, type, payload }. For an invalid delivery, throw a SyntaxError (as JSON.parse does) or an error ' +
  'with `issues` (as schemas do): the response is then 400.'

export type DeliveryReading =
  | {
      readonly refusal: null
      readonly event: object
      readonly id: string
      /** As sent. */
      readonly type: string
      /** `null` if the event is nested too deeply to be hashed. */
      readonly fingerprint: string | null
    }
  | { readonly refusal: 'body_malformed' }
  | {
      readonly refusal: 'event_invalid'
      readonly issues: readonly WebhookEventIssue[]
      /** The parsed body of the refused delivery: it may still contain the event's id and type. */
      readonly of: unknown
    }

/** What differs between senders. */
export interface SenderProtocol {
  /** The types that its events can have; `null`: any, and `on` says which are handled. */
  readonly types: readonly string[] | null
  /** The content types of its deliveries; `null`: any. */
  readonly contentType: RegExp | null
  /** The type in a delivery's path, or `null` if the path is not a delivery's. Absent: every path is one. */
  readonly findTypeInPath?: (target: string) => string | null
  /** Reads a delivery whose signature was accepted. */
  readonly read: (raw: Buffer, headers: IncomingHttpHeaders) => MaybePromise<DeliveryReading>
}

/** The sender whose deliveries `parse` reads: every request is one. */
export function createParsedSender(parse: ParseDelivery<ParsedEvent>): SenderProtocol {
  return { types: null, contentType: null, read: (raw, headers) => callParse(parse, raw, headers) }
}
