import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Answer, IdempotencyError } from '../../core/index.js'
import { sendAnswer } from '../../node/send.js'
import { Deliveries } from './deliveries.js'
import { typeInPath } from './delivery-path.js'
import type { ParsedEvent } from './parse.js'
import {
  type GivenReceiverOptions,
  type ParsedReceiverOptions,
  resolveReceiverOptions,
  type WebhookReceiverOptions,
} from './receiver-options.js'
import { refusalAnswer } from './refusal.js'

/** Receives deliveries. `next` may be left out on plain `node:http`: then it answers other paths, and misuse, itself. */
export type Receive = (req: IncomingMessage, res: ServerResponse, next?: (err?: unknown) => void) => void

/** A receiver for Express 4 and 5, Connect, and plain `node:http`. */
export interface WebhookReceiver extends Receive {
  /** The same for one URL that all types share: it looks at no path. With `parse` there is no difference. */
  readonly handle: Receive
  /**
   * Resolves when no run is left, and no completion is pending. Call it after `server.close()` and before closing the
   * store's client.
   */
  idle(): Promise<void>
}

/**
 * Receives webhook events and handles each at most once to success: through the engine of the middleware, with the same
 * promises. By default those of the payments service, at `POST …/api/service/webhook-event/<type>` under whatever it is
 * mounted at; requests for other paths go to `next`. Mount it before body parsers: a signature is about the bytes as they
 * were sent.
 *
 * The sender is answered 200 after the handler resolved, and for a repeat of such an event; 500 when it throws; 409 while
 * it runs, and for another event with the same id; 400, 401, 413, 415 and 501 for what is refused before anything runs;
 * 503 when the store cannot be reached. A handler goes on when its client leaves, and its end counts.
 *
 * Misuse by the application is passed to `next` as an IdempotencyError; no handler runs, and nothing is stored.
 *
 * @example
 * const receiver = webhookReceiver({
 *   store: new MemoryStore(),
 *   source: 'payments',
 *   verify: standardWebhooks({ secrets: [secret] }),
 *   on: { merchant_updated: async (event) => rename(event.payload.id, event.payload.displayName) },
 * })
 * app.use(receiver)
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function webhookReceiver<Req extends IncomingMessage = IncomingMessage>(
  options: WebhookReceiverOptions<Req>,
): WebhookReceiver
/**
 * The same for any other sender, such as Stripe, GitHub or Shopify: `parse` reads its deliveries, and each request that
 * reaches the receiver is one. The id that `parse` answers makes two deliveries the same, and its `fingerprint` where it
 * answers one. An event of a type without a handler is answered 200 as well, and nothing is stored.
 *
 * @example
 * const receiver = webhookReceiver({
 *   store,
 *   source: 'github',
 *   verify: hmacSha256({ header: 'X-Hub-Signature-256', prefix: 'sha256=', secrets: [secret] }),
 *   parse: (raw, headers) => ({
 *     id: headers['x-github-delivery'] as string, // an absent one is answered 400
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
): WebhookReceiver
export function webhookReceiver<Req extends IncomingMessage>(given: GivenReceiverOptions<Req>): WebhookReceiver {
  const options = resolveReceiverOptions(given)
  const deliveries = new Deliveries<Req>(options)

  const receiver: Receive = (req, res, next) => {
    if (options.parse !== undefined) return handle(req, res, next)
    const type = typeInPath(req)
    if (type !== null) deliveries.during(() => receive(deliveries, req as Req, res, next, type))
    else if (next !== undefined) next()
    else send(req, res, deliveries.refused('path_unknown', {}))
  }
  function handle(this: unknown, req: IncomingMessage, res: ServerResponse, next?: (err?: unknown) => void): void {
    // Connect takes whatever has a `handle` for an application: it notes as `route` where that is mounted, and calls this.
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
    // To end a response that another began would acknowledge the event.
    if (!res.writableEnded) res.destroy()
  }
}

/** Unless somebody else, such as a time limit, has answered. */
function send(req: IncomingMessage, res: ServerResponse, answer: Answer): void {
  if (!res.headersSent) sendAnswer(req, res, answer, false)
}

function responseBegun(): IdempotencyError {
  return new IdempotencyError(
    'response_begun',
    'The response was begun before the webhook receiver, so its sender could not be told how the event ended. Mount ' +
      'whatever writes to it behind the receiver.',
  )
}
