import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Answer, refuseMount } from '../../core/index.js'
import { toResponse } from '../../fetch/answer.js'
import { isRequest } from '../../fetch/request.js'
import { type WaitUntil, waitFor } from '../../http/index.js'
import { isResponseInProgress, isWithoutErrorParameter, responseBegunError } from '../../node/hold.js'
import { sendAnswer } from '../../node/sending/send.js'
import { Deliveries } from './delivery/deliveries.js'
import { type AnyRequest, createFetchDelivery, createNodeDelivery } from './delivery/delivery.js'
import { createRefusalAnswer } from './delivery/refusal.js'
import type { ParsedEvent, SenderProtocol } from './parse.js'
import { type ParsedReceiverOptions, type RawReceiverOptions, resolveReceiverOptions } from './receiver-options.js'

/**
 * Receives deliveries. Without `next` (plain `node:http`) it responds to other paths, and to misuse, itself; to misuse also where `next`
 * takes no error.
 */
export type WebhookRequestListener = (req: IncomingMessage, res: ServerResponse, next?: (err?: unknown) => void) => void

/** A receiver for Express 4 and 5, Connect, and plain `node:http`. */
export interface WebhookReceiver extends WebhookRequestListener {
  /** The same for one URL that all types share: the path is ignored. With `parse` there is no difference. */
  readonly handle: WebhookRequestListener
  /**
   * The same for a Fetch `Request`: Next.js, Hono, Workers, Deno, Bun. The handlers and the records are the same, so a
   * delivery that one form has handled is a repeat for the other. The body must be unread. With the payments service's events,
   * the path may be any; where it names a type, it must be the event's.
   *
   * Rejects with an IdempotencyError for misuse: no handler ran, and nothing was stored. Platforms that stop after a response
   * need `waitUntil`.
   *
   * @example export const POST = (request: Request) => receiver.fetch(request)
   */
  fetch(request: Request, terms?: { readonly waitUntil?: WaitUntil | undefined }): Promise<Response>
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
export function webhookReceiver<Event extends ParsedEvent, Req extends AnyRequest = IncomingMessage>(
  options: ParsedReceiverOptions<Event, Req>,
): WebhookReceiver {
  return createReceiver(options as RawReceiverOptions<Req>, null)
}

/** Without `parse` the sender is `byDefault`. */
export function createReceiver<Req extends AnyRequest>(
  given: RawReceiverOptions<Req>,
  byDefault: SenderProtocol | null,
): WebhookReceiver {
  const options = resolveReceiverOptions(given, byDefault)
  const { findTypeInPath } = options.sender
  const deliveries = new Deliveries<Req>(options)

  const receiver: WebhookRequestListener = (req, res, next) => {
    if (!isOfNode(res)) return refuseMount(FOR, [req, res, next], INSTEAD)
    if (findTypeInPath === undefined) return handle(req, res, next)
    const type = findTypeInPath(getOriginalTarget(req))
    if (type !== null) void receive(deliveries, req as Req & IncomingMessage, res, next, type)
    else if (next !== undefined) next()
    else send(req, res, deliveries.refuse('path_unknown', {}))
  }
  function handle(this: unknown, req: IncomingMessage, res: ServerResponse, next?: (err?: unknown) => void): void {
    // Connect treats anything with a `handle` as an application: it sets `route` to the mount path and calls `handle`.
    if (this === receiver && 'route' in receiver) receiver(req, res, next)
    else if (!isOfNode(res)) refuseMount(FOR, [req, res, next], INSTEAD)
    else void receive(deliveries, req as Req & IncomingMessage, res, next, null)
  }
  async function fetch(
    request: Request,
    { waitUntil }: { readonly waitUntil?: WaitUntil | undefined } = {},
  ): Promise<Response> {
    if (!isRequest(request)) refuseMount(FETCH_FOR, [request], INSTEAD)
    const type = findTypeInPath?.(request.url) ?? null
    const delivery = createFetchDelivery(request as Req & Request, waitUntil)
    const receiving = deliveries
      .handleDelivery(delivery, type)
      .then((answer) => (answer === null ? new Response(null, { status: 400 }) : toResponse(answer, request.method))) // Nobody reads that of a sender that has gone.
    waitFor({ waitUntil }, () => receiving.then(doNothing, doNothing)) // A sender that leaves must not end the handler.
    return receiving
  }
  return Object.assign(receiver, { handle, fetch, idle: () => deliveries.waitUntilIdle() })
}

const FOR = 'A webhook receiver is middleware for Express, Connect and node:http'
const FETCH_FOR = '`receiver.fetch` takes a Request'
const INSTEAD =
  'On Fetch call `receiver.fetch(request)`, on Hono `receiver.fetch(c.req.raw)`; on Koa `receiver(ctx.req, ctx.res)`, with `ctx.respond = false`; ' +
  'on Fastify `receiver(request.raw, reply.raw)`, after `reply.hijack()`.'

function isOfNode(res: ServerResponse | undefined): boolean {
  return typeof res?.setHeader === 'function'
}

/** Express and Connect cut the mount point off `url`, and `{webhook_receiver_url}` may have a path. */
function getOriginalTarget(req: IncomingMessage): string {
  const { originalUrl = req.url ?? '' } = req as { originalUrl?: string }
  return originalUrl
}

function doNothing(): void {}

async function receive<Req extends AnyRequest>(
  deliveries: Deliveries<Req>,
  req: Req & IncomingMessage,
  res: ServerResponse,
  next: ((err?: unknown) => void) | undefined,
  typeOfPath: string | null,
): Promise<void> {
  try {
    if (isResponseInProgress(res)) throw responseBegunError('webhook receiver', 'its sender cannot get the result')
    const answer = await deliveries.handleDelivery(createNodeDelivery(req), typeOfPath)
    if (answer !== null) send(req, res, answer)
  } catch (error) {
    if (next !== undefined && !isWithoutErrorParameter(req, next)) return next(error)
    deliveries.emit({ type: 'receiver_failed', error })
    send(req, res, createRefusalAnswer('receiver_failed'))
    // Another middleware began the response; ending it normally would acknowledge the event.
    if (!res.writableEnded) res.destroy()
  }
}

/** Does nothing if another middleware has responded, for example a time limit. */
function send(req: IncomingMessage, res: ServerResponse, answer: Answer): void {
  if (!res.headersSent) sendAnswer(req, res, answer, false)
}
