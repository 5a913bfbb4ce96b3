import type { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { IdempotencyError, inItsWords, kindOf } from '../../core/index.js'
import { requestFingerprint } from '../../http/index.js'
import { type WebhookEventIssue, writtenPath } from '../events/event-error.js'
import type { Delivered } from './delivered-event.js'

/** What `parse` makes of a delivery. More members are handed to the handler as they are. */
export interface ParsedEvent {
  /**
   * Identifies the event: the same each time that it is delivered. Take one that the signature covers where there is one: a
   * recorded delivery can be sent again under any id that it does not cover.
   */
  readonly id: string
  /** The kind of event: its handler's name in `on`. */
  readonly type: string
  /** What the event is about. */
  readonly payload: unknown
  /**
   * What makes two deliveries the same, besides the id: another under the same id is refused with 409. Any JSON value,
   * string or bytes, such as what of the payload does not change from one try to the next.
   * @default none: the id alone, since senders change counters between tries
   */
  readonly fingerprint?: unknown
}

/**
 * Reads a delivery: the body's bytes as they were sent, and the request's headers, with names in lower case.
 *
 * What it throws refuses the delivery with 400 where the sender is to blame: a `SyntaxError`, as JSON.parse throws, or an
 * error with `issues`, as schemas throw. Anything else is passed to `next` as `parse_failed`.
 */
export type Parse<Event extends ParsedEvent> = (raw: Buffer, headers: IncomingHttpHeaders) => Event | Promise<Event>

/**
 * What `parse` makes of a delivery, or why it is refused.
 *
 * @throws IdempotencyError `parse_failed`: nothing ran and nothing was stored.
 */
export async function parsedEvent(
  parse: Parse<ParsedEvent>,
  raw: Buffer,
  headers: IncomingHttpHeaders,
): Promise<Delivered> {
  let answer: unknown
  try {
    answer = await parse(raw, headers)
  } catch (error) {
    return refusalFor(error)
  }
  return checked(answer)
}

function checked(answer: unknown): Delivered {
  if (typeof answer !== 'object' || answer === null) {
    throw new IdempotencyError('parse_failed', `parse() returned ${kindOf(answer)}. ${WAY_OUT}`)
  }
  const event = answer as ParsedEvent
  const issues = [...issuesWithId(event.id), ...issuesWithType(event.type)]
  if (issues.length > 0) return { refusal: 'event_invalid', issues, of: event }
  // No other event's and no request's: neither has this for a method.
  const fingerprint = requestFingerprint('parsed event', '', event.fingerprint ?? null)
  return { refusal: null, event, id: event.id, type: event.type, fingerprint }
}

function issuesWithId(id: unknown): WebhookEventIssue[] {
  if (typeof id === 'string' && id !== '' && id.isWellFormed()) return []
  const seen = id === undefined ? 'nothing' : id === '' ? 'an empty string' : kindOf(id)
  return [{ path: 'id', message: `expected a string that is not empty; seen: ${seen}` }]
}

function issuesWithType(type: unknown): WebhookEventIssue[] {
  if (typeof type === 'string') return []
  return [{ path: 'type', message: `expected a string; seen: ${type === undefined ? 'nothing' : kindOf(type)}` }]
}

function refusalFor(thrown: unknown): Delivered {
  if (thrown instanceof SyntaxError) return { refusal: 'body_malformed' }
  const { issues } = (thrown ?? {}) as { readonly issues?: unknown }
  if (Array.isArray(issues)) return { refusal: 'event_invalid', issues: issues.map(issueIn), of: undefined }
  throw new IdempotencyError('parse_failed', `parse() failed${inItsWords(thrown)}. ${WAY_OUT}`, { cause: thrown })
}

/** As schemas write them (Standard Schema): a path is a list of keys, or of objects that hold one. */
function issueIn(given: unknown): WebhookEventIssue {
  const { path = [], message } = (given ?? {}) as { readonly path?: unknown; readonly message?: unknown }
  const steps = Array.isArray(path) ? path.map((step) => (step as { key?: PropertyKey } | null)?.key ?? step) : [path]
  return { path: writtenPath(steps as PropertyKey[]), message: String(message) }
}

const WAY_OUT =
  'It must return { id, type, payload }. Where the sender is to blame, let it throw what JSON.parse throws (a SyntaxError) ' +
  'or an error with `issues`, as schemas do: that is answered with 400.'
