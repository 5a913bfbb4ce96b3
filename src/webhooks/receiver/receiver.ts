import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Answer, IdempotencyError } from '../../core/index.js'
import { sendAnswer } from '../../node/sending/send.js'
import { Deliveries } from './delivery/deliveries.js'
import { refusalAnswer } from './delivery/refusal.js'
import type { ParsedEvent } from './parsing/parse.js'
import type { Sender } from './parsing/sender.js'
import { type GivenReceiverOptions, type ParsedReceiverOptions, resolveReceiverOptions } from './receiver-options.js'

/** Receives deliveries. Without `next` (plain `node:http`) it responds to other paths, and to misuse, itself. */
export type Receive = (req: IncomingMessage, res: ServerResponse, next?: (err?: unknown) => void) => void

/** A receiver for Express 4 and 5, Connect, and plain `node:http`. */
export interface WebhookReceiver extends Receive {
  /** The same for one URL that all types share: the path is ignored. With `parse` there is no difference. */
  readonly handle: Receive
  /**
   * Resolves when no run is active and no completion is pending. Call it after `server.close()` and before closing the
   * store's client.
   */
  idle(): Promise<void>
}

/**
 * Receives webhook events of any sender, for example Stripe, GitHub or Shopify, and handles each at most once to
 * success: it uses the middleware's engine and keeps the same promises. `parse` reads the deliveries, and every request
 * that reaches the receiver counts as one. Mount it before body parsers: a signature covers the raw bytes.
 *
 * Two deliveries are the same if `parse` returns the same id for both and, if it returns one, the same `fingerprint`.
 * The sender gets 200 after the handler resolved, for a repeat of such an event, and for an event of a type without a
 * handler, of which nothing is stored; 500 if it throws; 409 while it runs, and for another event with the same id; 400,
 * 401, 405, 413 and 415 for what is refused before anything runs; 503 if the store cannot be reached. If the client
 * disconnects, the handler continues, and its result counts.
 *
 * Misuse by the application is passed to `next` as an IdempotencyError; no handler runs, and nothing is stored.
 *
 * @example
 * const receiver = webhookReceiver({
 *   store,
 *   source: 'github',
 *   verify: hmacSha256({ header: 'X-Hub-Signature-256', prefix: 'sha256=', secrets: [secret] }),
 *   parse: (raw, headers) => ({
 *     id: headers['x-github-delivery'] as string, // a missing header gets 400
 *     type: headers['x-github-event'] as string,
 *     payload: JSON.parse(raw.toString()),
 *   }),
 *   on: { push: ({ payload }) => deploy(payload.after) },
 * })
 * app.post('/webhooks/github', receiver)
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function webhookReceiver<Event extends ParsedEvent, Req extends IncomingMessage = IncomingMessage>(
  options: ParsedReceiverOptions<Event, Req>,
): WebhookReceiver {
  return receiverFor(options as GivenReceiverOptions<Req>, null)
}

/** Without `parse` the sender is `byDefault`. */
export function receiverFor<Req extends IncomingMessage>(
  given: GivenReceiverOptions<Req>,
  byDefault: Sender | null,
): WebhookReceiver {
  const options = resolveReceiverOptions(given, byDefault)
  const { typeInPath } = options.sender
  const deliveries = new Deliveries<Req>(options)

  const receiver: Receive = (req, res, next) => {
    if (typeInPath === undefined) return handle(req, res, next)
    const type = typeInPath(req)
    if (type !== null) deliveries.during(() => receive(deliveries, req as Req, res, next, type))
    else if (next !== undefined) next()
    else send(req, res, deliveries.refused('path_unknown', {}))
  }
  function handle(this: unknown, req: IncomingMessage, res: ServerResponse, next?: (err?: unknown) => void): void {
    // Connect treats anything with a `handle` as an application: it sets `route` to the mount path and calls `handle`.
    if (this === receiver && 'route' in receiver) receiver(req, res, next)
    else deliveries.during(() => receive(deliveries, req as Req, res, next, null))
  }
  return Object.assign(receiver, { handle, idle: () => deliveries.idle() })
}

async function receive<Req extends IncomingMessage>(
  deliveries: Deliveries<Req>,
  req: Req,
  res: ServerResponse,
  next: ((err?: unknown) => void) | undefined,
  typeOfPath: string | null,
): Promise<void> {
  try {
    if (res.headersSent && !res.writableEnded) throw responseBegun()
    const answer = await deliveries.answerTo(req, typeOfPath)
    if (answer !== null) send(req, res, answer)
  } catch (error) {
    if (next !== undefined) return next(error)
    deliveries.emit({ type: 'receiver_failed', error })
    send(req, res, refusalAnswer('receiver_failed'))
    // Another middleware began the response; ending it normally would acknowledge the event.
    if (!res.writableEnded) res.destroy()
  }
}

/** Does nothing if another middleware has responded, for example a time limit. */
function send(req: IncomingMessage, res: ServerResponse, answer: Answer): void {
  if (!res.headersSent) sendAnswer(req, res, answer, false)
}

function responseBegun(): IdempotencyError {
  return new IdempotencyError(
    'response_begun',
    'Another middleware began the response before the webhook receiver could, so the sender did not get its result. Mount ' +
      'middleware that writes to the response after the receiver.',
  )
}
