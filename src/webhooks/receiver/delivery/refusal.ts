import type { Answer } from '../../../core/index.js'
import {
  createProblemFrom,
  type Problem,
  type ProblemCatalogue,
  type ProblemCode,
  problemCatalogue,
  toProblemAnswer,
  toProblemBody,
} from '../../../http/index.js'
import type { WebhookEventIssue } from '../../events/event-error.js'

/**
 * Why a delivery is refused, besides the core's reasons. A closed set: a new code is a minor release.
 *
 * - `path_unknown`: 404: not a webhook path, and no `next` to pass the request to.
 * - `method_not_allowed`: 405: deliveries are POST.
 * - `content_type_unsupported`: 415: not `application/json` (without `parse`), or compressed.
 * - `body_too_large`: 413: more than `maxBodyBytes`.
 * - `signature_refused`: 401: `verify` returned false.
 * - `body_malformed`: 400: not JSON in UTF-8, or `parse` threw a `SyntaxError`.
 * - `event_invalid`: 400: the envelope or the payload is not as documented; the body lists the errors, without values.
 *   With `parse`: it threw an error with `issues`, or returned no `id` or `type`.
 * - `type_disagrees`: 400: the event's type differs from the path's.
 * - `body_too_deep`: 400: nested too deeply.
 * - `event_unhandled`: 501: no handler for this type, so it is not acknowledged (without `parse`).
 * - `handler_failed`: 500: the handler threw.
 * - `receiver_failed`: 500: misuse by the application, and no `next` to pass it to.
 */
export type ReceiverRefusalCode = keyof typeof CATALOGUE

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
    detail: 'Send the event with its documented content type, such as application/json, and without a content coding.',
    retry: false,
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    detail: 'It has more bytes than this receiver accepts.',
    retry: false,
  },
  signature_refused: {
    status: 401,
    title: 'The signature was refused',
    detail: 'The signature does not prove that the delivery comes from its sender. The delivery was not read.',
    retry: false,
  },
  body_malformed: {
    status: 400,
    title: 'The body is malformed',
    detail: 'The body is not JSON in UTF-8.',
    retry: false,
  },
  event_invalid: {
    status: 400,
    title: 'The event is invalid',
    detail: 'The event is not as documented; "errors" lists what is wrong.',
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
    title: 'There is no handler for events of this type',
    detail: 'The event was not acknowledged. Send it again later, or unsubscribe from this type.',
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

/** A refusal as the response to send, in the shape of the engine's problems. */
export function createRefusalAnswer(code: ReceiverRefusalCode, issues?: readonly WebhookEventIssue[]): Answer {
  const problem = createProblemFrom(CATALOGUE, code)
  const errors = issues?.map(({ path, message }) => ({ path, message }))
  const answer = toProblemAnswer(problem, { body: { ...toProblemBody(problem), ...(errors && { errors }) } })
  return code === 'method_not_allowed' ? { ...answer, headers: [...answer.headers, ['Allow', 'POST']] } : answer
}

/** The engine's problems, worded for event senders, which do not know idempotency keys. */
export function toEventProblem(problem: Problem): { readonly body: object } {
  return { body: toProblemBody({ ...problem, ...WORDS[problem.code] }) }
}

const WORDS: Readonly<Partial<Record<ProblemCode, { readonly title: string; readonly detail: string }>>> = {
  in_flight: {
    title: 'The event is being handled',
    detail: 'An earlier delivery is still being handled. Send the event again after a short delay.',
  },
  mismatched: {
    title: 'The id was used for another event',
    detail: 'Type or payload differ from the first event with this id. Send new content as a new event with a new id.',
  },
  outcome_unknown: {
    title: 'The outcome of an earlier delivery is unknown',
    detail: 'The earlier delivery was interrupted and may have had its effect, so the event is not handled again.',
  },
  key_expired: {
    title: 'The event is too old',
    detail: 'It was created so long ago that an earlier delivery may have been forgotten, so it is not handled.',
  },
  store_unavailable: {
    title: 'Events cannot be received at the moment',
    detail: 'The event was not handled. Send it again after a short delay.',
  },
}
