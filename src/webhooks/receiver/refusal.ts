import type { Answer } from '../../core/index.js'
import {
  type Problem,
  type ProblemCatalogue,
  type ProblemCode,
  problemAnswer,
  problemBody,
  problemCatalogue,
  problemFrom,
} from '../../http/index.js'
import type { WebhookEventIssue } from '../events/event-error.js'

/**
 * Why a delivery is refused, besides the core's reasons. Closed: a new one is a minor release.
 *
 * - `path_unknown`: 404: no webhook path, and no `next` to hand the request to.
 * - `method_not_allowed`: 405: deliveries are POST.
 * - `content_type_unsupported`: 415: not `application/json` (where there is no `parse`), or compressed.
 * - `body_too_large`: 413: more than `maxBodyBytes`.
 * - `signature_refused`: 401: `verify` said no.
 * - `body_malformed`: 400: not JSON in UTF-8, or `parse` threw a `SyntaxError`.
 * - `event_invalid`: 400: the envelope or the payload is not as documented; the body lists what, without values. With
 *   `parse`: it threw an error with `issues`, or answered no `id` or `type`.
 * - `type_disagrees`: 400: the event's type is not the path's.
 * - `body_too_deep`: 400: nested too deeply.
 * - `event_unhandled`: 501: nobody handles events of this type, so it is not acknowledged (where there is no `parse`).
 * - `handler_failed`: 500: the handler threw.
 * - `receiver_failed`: 500: misuse by the application, where there is no `next` to tell.
 */
export type RefusalCode = keyof typeof CATALOGUE

const CATALOGUE = {
  path_unknown: {
    status: 404,
    title: 'Not found',
    detail: 'Events are received at /api/service/webhook-event/<type>.',
    retry: false,
  },
  method_not_allowed: {
    status: 405,
    title: 'Events are delivered with POST',
    detail: 'Send the event as the body of a POST request.',
    retry: false,
  },
  content_type_unsupported: {
    status: 415,
    title: 'The content type is not supported',
    detail: 'Send the event as it is documented, such as application/json, and without a content coding.',
    retry: false,
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    detail: 'It holds more bytes than this receiver reads.',
    retry: false,
  },
  signature_refused: {
    status: 401,
    title: 'The signature was refused',
    detail: 'The delivery does not show that it comes from its sender. Nothing was read from it.',
    retry: false,
  },
  body_malformed: {
    status: 400,
    title: 'The body is malformed',
    detail: 'It cannot be read: it is not JSON in UTF-8.',
    retry: false,
  },
  event_invalid: {
    status: 400,
    title: 'The event is invalid',
    detail: 'It is not as documented; "errors" lists what is wrong.',
    retry: false,
  },
  type_disagrees: {
    status: 400,
    title: 'The type of the event disagrees with the path',
    detail: 'Send an event to the path that ends with its type.',
    retry: false,
  },
  body_too_deep: problemCatalogue.body_too_deep,
  event_unhandled: {
    status: 501,
    title: 'Nobody handles events of this type',
    detail: 'It was not acknowledged. Send it again later, or subscribe to other events.',
    retry: true,
  },
  handler_failed: {
    status: 500,
    title: 'The event could not be handled',
    detail: 'Send it again later.',
    retry: true,
  },
  receiver_failed: {
    status: 500,
    title: 'The receiver failed',
    detail: 'The event was not handled. Send it again later.',
    retry: true,
  },
} as const satisfies ProblemCatalogue

/** Paths and messages of a body that is all wrong: enough to see what is. */
const MOST_ERRORS = 100

/** A refusal as the response to send, in the shape of the engine's problems. */
export function refusalAnswer(code: RefusalCode, issues?: readonly WebhookEventIssue[]): Answer {
  const problem = problemFrom(CATALOGUE, code)
  const errors = issues?.slice(0, MOST_ERRORS).map(({ path, message }) => ({ path, message }))
  const answer = problemAnswer(problem, { body: { ...problemBody(problem), ...(errors && { errors }) } })
  return code === 'method_not_allowed' ? { ...answer, headers: [...answer.headers, ['Allow', 'POST']] } : answer
}

/** The engine's problems in the words of events: their senders know of no idempotency key. */
export function eventProblem(problem: Problem): { readonly body: object } {
  return { body: problemBody({ ...problem, ...WORDS[problem.code] }) }
}

const WORDS: Readonly<Partial<Record<ProblemCode, { readonly title: string; readonly detail: string }>>> = {
  in_flight: {
    title: 'The event is being handled',
    detail: 'An earlier delivery of it has not ended yet. Send it again after a short delay.',
  },
  mismatched: {
    title: 'The id was used for another event',
    detail:
      'Type or payload differ from the first event with this id. An event keeps its content; a new one has a new id.',
  },
  outcome_unknown: {
    title: 'The outcome of an earlier delivery is unknown',
    detail: 'It was interrupted and may have had its effect, so the event is not handled again.',
  },
  store_unavailable: {
    title: 'Events cannot be received at the moment',
    detail: 'The store could not be reached. Send the event again after a short delay.',
  },
}
