import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { consult } from '../core/consult.js'
import { kindOf } from '../core/errors.js'
import { safely } from '../core/events.js'
import { fingerprintOf, TOO_DEEP } from '../core/fingerprint.js'
import { type Answer, createEngine, type Execution, IdempotencyError } from '../core/index.js'
import type { Soon } from '../core/soon.js'
import { WithSignal } from '../core/with-signal.js'
import { deliveredEvent } from './delivered-event.js'
import { typeInPath } from './delivery-path.js'
import { isKnownEvent, type WebhookEvent, webhookEventTypes } from './event.js'
import type { WebhookEventIssue } from './event-error.js'
import { eventKey } from './event-key.js'
import { readRawBody } from './raw-body.js'
import {
  resolveReceiverOptions,
  type WebhookContext,
  type WebhookHandler,
  type WebhookReceiverOptions,
} from './receiver-options.js'
import { eventProblem, type RefusalCode, refusalAnswer } from './refusal.js'
import { sendAnswer } from './send.js'
import { resolveSource } from './source.js'

/** Receives deliveries. `next` may be left out on plain `node:http`: then it answers other paths, and misuse, itself. */
export type Receive = (req: IncomingMessage, res: ServerResponse, next?: (err?: unknown) => void) => void

/** A receiver for Express 4 and 5, Connect, and plain `node:http`. */
export interface WebhookReceiver extends Receive {
  /** The same for one URL that all types share: it looks at no path. */
  readonly handle: Receive
  /**
   * Resolves when no run is left, and no completion is pending. Call it after `server.close()` and before closing the
   * store's client.
   */
  idle(): Promise<void>
}

/**
 * Receives webhook events at `POST …/api/service/webhook-event/<type>`, under whatever it is mounted at, and handles each
 * at most once to success: through the engine of the middleware, with the same promises. Requests for other paths go to
 * `next`. Mount it before body parsers: a signature is about the bytes as they were sent.
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
  given: WebhookReceiverOptions<Req>,
): WebhookReceiver {
  const { source, verify, on, onUnknownEvent, maxBodyBytes, onEvent, ofEngine } = resolveReceiverOptions(given)
  const emit = safely(onEvent)
  const engine = createEngine<Req>({ ...ofEngine, onEvent: emit, renderProblem: eventProblem })

  /** What to answer; `null`: nobody is left to answer. */
  async function answerTo(req: Req, typeOfPath: string | null): Promise<Answer | null> {
    if (req.method !== 'POST') return refused('method_not_allowed')
    if (!JSON_TYPE.test(req.headers['content-type'] ?? '')) return refused('content_type_unsupported')

    const raw = await readRawBody(req, maxBodyBytes)
    if (raw.kind === 'abandoned') return null
    if (raw.kind === 'too_large') return refused('body_too_large')
    if (raw.kind === 'encoded') return refused('content_type_unsupported')
    if (!(await isVerified(raw.bytes, req))) return refused('signature_refused')

    const delivered = deliveredEvent(raw.bytes)
    if (delivered.refusal === 'event_invalid') return refused('event_invalid', delivered.issues)
    if (delivered.refusal !== null) return refused(delivered.refusal)
    const { event, type, payload } = delivered
    if (typeOfPath !== null && typeOfPath !== type) return refused('type_disagrees')
    // No request has a method in lower case.
    const fingerprint = fingerprintOf('event', type, payload)
    if (fingerprint === TOO_DEEP) return refused('body_too_deep')
    const handler = handlerOf(event)
    if (handler === undefined) return refused('event_unhandled')

    const scope = await resolveSource(source, req)
    const identity = { namespace: 'webhook', scope, key: eventKey(event.id), fingerprint } as const
    const decision = await engine.claim(identity, { request: req, isAbandoned: () => req.socket?.destroyed })
    switch (decision.action) {
      case 'execute':
        return run(handler, event, decision.execution, req)
      case 'replay':
        return decision.answer
      case 'reject':
        return engine.answerOf(decision.problem, req)
    }
  }

  async function run(
    handler: WebhookHandler<never>,
    event: WebhookEvent,
    execution: Execution,
    req: Req,
  ): Promise<Answer> {
    const answer = await endOf(handler, event, execution)
    // The record changes first: whoever has seen the answer can send the event again at once.
    const settled = await execution.settle(answer)
    switch (settled.action) {
      case 'send':
        return answer
      case 'replay':
        return settled.answer
      case 'reject':
        return engine.answerOf(settled.problem, req)
    }
  }

  async function endOf(handler: WebhookHandler<never>, event: WebhookEvent, execution: Execution): Promise<Answer> {
    const { scope, key, attempt } = execution
    try {
      await handler(event as never, contextOf(execution))
      return HANDLED
    } catch (error) {
      if (onEvent === undefined) console.error(error)
      emit({ type: 'handler_failed', scope, key, attempt, error })
      return refusalAnswer('handler_failed')
    }
  }

  function refused(code: Refused, issues?: readonly WebhookEventIssue[]): Answer {
    emit({ type: 'rejected', code })
    return refusalAnswer(code, issues)
  }

  function isVerified(raw: Buffer, req: Req): Soon<boolean> {
    return verify === false || consult(({ headers }) => verify(raw, headers), req, checkedVerdict, verifyFailed)
  }

  function handlerOf(event: WebhookEvent): WebhookHandler<never> | undefined {
    return isKnownEvent(event) ? handlers.get(event.type) : onUnknownEvent
  }

  // Read once; called as methods, so that an object of a class can be `on`.
  const handlers = new Map<string, WebhookHandler<never> | undefined>(
    webhookEventTypes.map((type) => [type, on[type]?.bind(on)]),
  )

  async function receive(
    req: Req,
    res: ServerResponse,
    next: ((err?: unknown) => void) | undefined,
    typeOfPath: string | null,
  ): Promise<void> {
    try {
      if (res.headersSent && !res.writableEnded) throw responseBegun()
      const answer = await answerTo(req, typeOfPath)
      if (answer !== null) sendAnswer(res, answer)
    } catch (error) {
      if (next !== undefined) return next(error)
      if (onEvent === undefined) console.error(error)
      emit({ type: 'receiver_failed', error })
      sendAnswer(res, refusalAnswer('receiver_failed'))
      // To end a response that another began would acknowledge the event.
      if (!res.writableEnded) res.destroy()
    }
  }

  /** Counts deliveries on their way: one may start a run, although its client has gone. */
  function counted(receiving: Promise<void>): void {
    underWay.add(receiving)
    void receiving.finally(() => underWay.delete(receiving))
  }

  const underWay = new Set<Promise<void>>()

  const receiver: Receive = (req, res, next) => {
    const type = typeInPath(req)
    if (type !== null) counted(receive(req as Req, res, next, type))
    else if (next !== undefined) next()
    else sendAnswer(res, refused('path_unknown'))
  }
  function handle(this: unknown, req: IncomingMessage, res: ServerResponse, next?: (err?: unknown) => void): void {
    // Connect takes whatever has a `handle` for an application: it notes as `route` where that is mounted, and calls this.
    if (this === receiver && 'route' in receiver) receiver(req, res, next)
    else counted(receive(req as Req, res, next, null))
  }
  async function idle(): Promise<void> {
    while (underWay.size > 0) await Promise.allSettled(underWay)
    await engine.idle()
  }
  return Object.assign(receiver, { handle, idle })
}

type Refused = Exclude<RefusalCode, 'handler_failed' | 'receiver_failed'>

/** "200 OK"; the document shows no body. */
const HANDLED: Answer = { status: 200, statusMessage: '', headers: [], body: Buffer.alloc(0) }

/** "Content-Type: application/json", with parameters or without. Other JSON types have envelopes of their own. */
const JSON_TYPE = /^\s*application\/json\s*(?:;|$)/i

function contextOf(execution: Execution): WebhookContext {
  const { scope: source, attempt, previousOutcome, context, deriveKey, mayHaveEffect } = execution
  const signal = () => execution.signal
  return Object.assign(new WithSignal(signal), { source, attempt, previousOutcome, context, deriveKey, mayHaveEffect })
}

function responseBegun(): IdempotencyError {
  return new IdempotencyError(
    'response_begun',
    'The response was begun before the webhook receiver, so its sender could not be told how the event ended. Mount ' +
      'whatever writes to it behind the receiver.',
  )
}

function checkedVerdict(verdict: unknown): boolean {
  if (typeof verdict === 'boolean') return verdict
  throw new IdempotencyError('verify_failed', `verify() answered ${kindOf(verdict)}. ${VERIFY_WAY_OUT}`)
}

function verifyFailed(cause: unknown): IdempotencyError {
  return new IdempotencyError('verify_failed', `verify() failed. ${VERIFY_WAY_OUT}`, { cause })
}

const VERIFY_WAY_OUT =
  'It must answer true or false: wrap a library that throws for a wrong signature in a `try`, and answer false there.'
