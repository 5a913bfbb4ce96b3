import type { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import {
  type Answer,
  carryRun,
  describeCause,
  describeKind,
  findKeyFault,
  type IdempotencyContext,
  IdempotencyError,
  type MaybePromise,
  safeListener,
} from '../../../core/index.js'
import {
  createFirstSentReader,
  createRequestEngine,
  type FirstSentReading,
  type IdempotencyEvent,
  type RequestEngine,
  type RequestRun,
  waitFor,
} from '../../../http/index.js'
import type { WebhookEventIssue } from '../../events/event-error.js'
import { type DeliveryReading, toIssues } from '../parse.js'
import {
  createSourceReader,
  type HandlerLookup,
  type ResolvedReceiverOptions,
  readHandlers,
  type WebhookContext,
  type WebhookHandler,
} from '../receiver-options.js'
import { ACKNOWLEDGED, type AnyRequest, type Delivery, DeliveryAnswer } from './delivery.js'
import {
  type DeliverySummary,
  printByDefault,
  readEventSummary,
  truncate,
  type WebhookReceiverEvent,
} from './receiver-event.js'
import { createRefusalAnswer, type ReceiverRefusalCode, toEventProblem } from './refusal.js'

/** Reads, verifies, claims and handles deliveries, in this order, and returns the response to each. */
export class Deliveries<Req extends AnyRequest> {
  readonly #options: ResolvedReceiverOptions<Req>
  readonly #handlerOf: HandlerLookup
  readonly #sourceOf: (req: Req) => MaybePromise<string>
  readonly #firstSentOf: ((event: never) => FirstSentReading) | undefined
  readonly #engine: RequestEngine<Req>
  readonly emit: (event: WebhookReceiverEvent) => void

  constructor(options: ResolvedReceiverOptions<Req>) {
    const { on, onUnknownEvent, sender, source, firstSent, onEvent, ofEngine } = options
    this.#options = options
    this.#handlerOf = readHandlers(on, onUnknownEvent, sender.types)
    this.#sourceOf = createSourceReader(source)
    this.#firstSentOf = firstSent && createFirstSentReader(firstSent, ofEngine.clockSkewMs)
    this.emit = safeListener(onEvent ?? printByDefault)
    const emit = this.emit as (event: IdempotencyEvent) => void // It rejects requests, and here it is only asked to claim.
    this.#engine = createRequestEngine<Req>({ ...ofEngine, onEvent: emit, renderProblem: toEventProblem })
  }

  /**
   * `typeOfPath`: the type in the path; `null` if it has none. Returns `null` if the client has gone.
   *
   * Counts as in progress for `idle()`: it may start a run even after its client has gone. A handler counts until it ends or its
   * lease is lost, since one may never end.
   */
  async handleDelivery(delivery: Delivery<Req>, typeOfPath: string | null): Promise<Answer | null> {
    const decided = await this.#engine.during(() => this.#decide(delivery, typeOfPath))
    if (decided === null || !('run' in decided)) return decided
    const running = this.#run(decided, delivery.request)
    void this.#engine.during(() => Promise.race([running.then(doNothing, doNothing), waitForLeaseLoss(decided.run)]))
    return running
  }

  async #decide(delivery: Delivery<Req>, typeOfPath: string | null): Promise<Answer | RunnableDelivery | null> {
    const { source, sender, maxBodyBytes } = this.#options
    const about: DeliverySummary = typeof source === 'string' ? { source } : {}
    if (delivery.method !== 'POST') return this.refuse('method_not_allowed', about)
    const isExpected = sender.contentType?.test(delivery.headers['content-type'] ?? '') ?? true
    if (!isExpected) return this.refuse('content_type_unsupported', about)

    const raw = await delivery.readBody(maxBodyBytes)
    if (raw.kind === 'abandoned') return null
    if (raw.kind === 'too_large') return this.refuse('body_too_large', about)
    if (raw.kind === 'encoded') return this.refuse('content_type_unsupported', about)
    if (!(await this.#isVerified(raw.bytes, delivery))) return this.refuse('signature_refused', about)

    const scope = await this.#readSource(delivery)
    if (typeof scope !== 'string') return this.refuse('event_invalid', about, scope)
    const delivered = await sender.read(raw.bytes, delivery.headers)
    switch (delivered.refusal) {
      case 'body_malformed':
        return this.refuse('body_malformed', { source: scope })
      case 'event_invalid':
        return this.refuse('event_invalid', { source: scope, ...readEventSummary(delivered.of) }, delivered.issues)
      case null:
        return this.#decideOnEvent(delivered, scope, delivery, typeOfPath)
    }
  }

  /**
   * The source of a delivery, or why it has none: a missing header is a mistake of its sender.
   *
   * @throws IdempotencyError `scope_invalid`: nothing ran and nothing was stored.
   */
  async #readSource({ request }: Delivery<Req>): Promise<string | readonly WebhookEventIssue[]> {
    try {
      return await this.#sourceOf(request)
    } catch (error) {
      const issues = toIssues((error as IdempotencyError).cause)
      if (issues === null) throw error
      return issues
    }
  }

  refuse(code: EarlyRefusalCode, about: DeliverySummary, issues?: readonly WebhookEventIssue[]): Answer {
    const told = issues?.slice(0, MOST_ISSUES)
    this.emit({ type: 'rejected', code, ...about, ...(told && { issues: told }) })
    return createRefusalAnswer(code, told)
  }

  /** Resolves when no delivery is in progress, no run is active, and no completion is pending. */
  waitUntilIdle(): Promise<void> {
    return this.#engine.idle()
  }

  async #decideOnEvent(
    { event, id, type, fingerprint }: Extract<DeliveryReading, { refusal: null }>,
    scope: string,
    delivery: Delivery<Req>,
    typeOfPath: string | null,
  ): Promise<Answer | RunnableDelivery> {
    const about = { source: scope, eventId: truncate(id), eventType: truncate(type) }
    if (typeOfPath !== null && typeOfPath !== type) return this.refuse('type_disagrees', about)
    if (fingerprint === null) return this.refuse('body_too_deep', about)
    const handler = this.#handlerOf(type)
    if (handler === undefined) {
      if (this.#options.sender.types !== null) return this.refuse('event_unhandled', about)
      this.emit({ type: 'ignored', ...about })
      return ACKNOWLEDGED
    }

    const reading = this.#firstSentOf?.(event as never) ?? { firstSent: undefined }
    if ('fault' in reading) {
      return this.refuse('event_invalid', about, [{ path: '', message: `its time is invalid: ${reading.fault}` }])
    }
    const { firstSent } = reading
    const identity = { namespace: 'webhook', scope, key: toEventKey(id), fingerprint, firstSent } as const
    const decision = await this.#engine.claim(identity, delivery)
    switch (decision.action) {
      case 'execute':
        waitFor(delivery, () => decision.run.ended())
        return { handler, event, run: decision.run }
      case 'replay':
        return this.#engine.answerFor(decision, delivery.request)
      case 'reject':
        // The claim is given up after it.
        if (decision.problem.code === 'store_unavailable') waitFor(delivery, () => this.waitUntilIdle())
        return this.#engine.answerFor(decision, delivery.request)
    }
  }

  async #run({ handler, event, run }: RunnableDelivery, req: Req): Promise<Answer> {
    const delivery = new DeliveryAnswer(run)
    run.registerBuffer(delivery)
    const ended = await this.#callHandler(handler, event, run)
    // A committed transaction completes the record, whatever the handler did afterwards.
    const answer = delivery.isAcknowledged ? ACKNOWLEDGED : ended
    // The record changes before the response is sent: a client that has seen it can send the event again at once.
    run.stopped()
    const settled = await run.settle(answer)
    return settled.action === 'send' ? answer : this.#engine.answerFor(settled, req)
  }

  async #callHandler(handler: WebhookHandler<never>, event: object, run: RequestRun): Promise<Answer> {
    const { scope, key, attempt } = run.context
    try {
      await handler(event as never, createWebhookContext(run.context))
      return ACKNOWLEDGED
    } catch (error) {
      run.reportError(error)
      if (!isTaken(error)) this.emit({ type: 'handler_failed', scope, key, attempt, error })
      return createRefusalAnswer('handler_failed')
    }
  }

  /** @throws IdempotencyError `verify_failed`: nothing ran and nothing was stored. */
  async #isVerified(raw: Buffer, { headers }: Delivery<Req>): Promise<boolean> {
    const { verify } = this.#options
    if (verify === false) return true
    let verdict: unknown
    try {
      verdict = await verify(raw, headers)
    } catch (cause) {
      throw new IdempotencyError('verify_failed', `verify() failed${describeCause(cause)}. ${VERIFY_WAY_OUT}`, {
        cause,
      })
    }
    if (typeof verdict === 'boolean') return verdict
    throw new IdempotencyError('verify_failed', `verify() returned ${describeKind(verdict)}. ${VERIFY_WAY_OUT}`)
  }
}

interface RunnableDelivery {
  readonly handler: WebhookHandler<never>
  readonly event: object
  readonly run: RequestRun
}

function doNothing(): void {}

/** Resolves if the lease is lost; a handler that has blocked the process may have lost it before it returns. */
function waitForLeaseLoss({ context: { signal } }: RequestRun): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** `transaction` found that another attempt has the event: nothing failed, and the sender is told what its record says. */
function isTaken(error: unknown): boolean {
  try {
    return error instanceof Error && 'code' in error && error.code === 'operation_taken'
  } catch {
    return false // An application's error may have getters that throw.
  }
}

/** If everything is wrong with a body, a log would have several times its size. */
const MOST_ISSUES = 100

type EarlyRefusalCode = Exclude<ReceiverRefusalCode, 'handler_failed' | 'receiver_failed'>

function createWebhookContext(context: IdempotencyContext): WebhookContext {
  const { scope: source, attempt, previousOutcome, deriveKey, mayHaveEffect, step } = context
  return carryRun(context, {
    ...{ source, attempt, previousOutcome, deriveKey, mayHaveEffect, step },
    get signal() {
      return context.signal
    },
  })
}

const VERIFY_WAY_OUT =
  'It must return true or false: wrap a library that throws for a wrong signature in a `try`, and return false there.'

/**
 * This prefix and the digest format are frozen within a major version: records made before an upgrade must still be
 * found.
 */
const DIGEST = 'webhook-id-sha256:'

/**
 * The key of an event: its id, unchanged (quotes belong to it, since it is not a header's value). An id that is not a
 * valid key, for example one of more than 255 characters, is replaced by its digest. So is an id that begins with the
 * digest's prefix: otherwise it could pose as another id's digest.
 */
function toEventKey(id: string): string {
  if (findKeyFault(id) === null && !id.startsWith(DIGEST)) return id
  return DIGEST + hash('sha256', id, 'base64url')
}
