import type { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import {
  findMistakes,
  findScopeFault,
  type IdempotencyContext,
  type MaybePromise,
  type OptionRule,
  optionRules,
  resolveOptions,
  warnOnce,
} from '../../core/index.js'
import {
  createScopeReader,
  type IdempotencyOptions,
  requestOptions,
  type Scope,
  singleTenant,
} from '../../http/index.js'
import type { AnyRequest } from './delivery/delivery.js'
import type { WebhookReceiverEvent } from './delivery/receiver-event.js'
import { createParsedSender, type ParseDelivery, type ParsedEvent, type SenderProtocol } from './parse.js'

/** Options that all receivers share. All durations are integers, in milliseconds. */
export interface CommonReceiverOptions<Req extends AnyRequest = IncomingMessage>
  extends Pick<IdempotencyOptions, keyof typeof SHARED_OPTIONS> {
  /**
   * Who owns the events: the sender, or the subscribed merchant account. A name of 1 to 255 characters, or a function of
   * the request (for `receiver.fetch` a Fetch one) that returns it. Receivers with one store and one source share records.
   * If it throws an error with `issues`, the delivery gets 400.
   */
  readonly source: Source<Req>

  /**
   * Checks that a delivery comes from its sender: `standardWebhooks(…)`, `hmacSha256(…)`, or a function of raw bytes
   * and headers. `false` means 401. Any other value, and a throw, is misuse (`verify_failed`): if your library throws
   * for a wrong signature, wrap it in a `try`.
   *
   * `verify: false` accepts unsigned deliveries: anybody who finds the URL can send events.
   */
  readonly verify: Verify | false

  /**
   * How long a handled event is remembered. At least `maxRunMs + leaseMs`.
   * @default 2_678_400_000 (31 days): known senders retry for at most 30 days
   */
  readonly retentionMs?: number | undefined

  /**
   * A larger body is refused with 413.
   * @default 1_048_576 (1 MiB)
   */
  readonly maxBodyBytes?: number | undefined

  /**
   * Receives everything that happens, and why a delivery was refused.
   * @default none: the process prints its warnings, and what handlers throw
   */
  readonly onEvent?: ((event: WebhookReceiverEvent) => void) | undefined
}

/** Options for any sender's events, for example Stripe's, GitHub's or Shopify's. */
export interface ParsedReceiverOptions<Event extends ParsedEvent, Req extends AnyRequest = IncomingMessage>
  extends CommonReceiverOptions<Req> {
  /** Reads a delivery, and returns what handlers receive. Write it before `on`, so that TypeScript infers its type. */
  readonly parse: ParseDelivery<Event>

  /** A handler for each type of event, in a plain object. */
  readonly on: WebhookHandlers<Event>

  /**
   * Handles events without a handler in `on`. Otherwise these are acknowledged, with an event (`ignored`).
   * @default none
   */
  readonly onUnknownEvent?: WebhookHandler<Event> | undefined

  /**
   * When the event was created: its own time, never a delivery's. If that is longer ago than records are kept, and
   * there is no record, the answer is 409 `key_expired`. An invalid date, or one more than `clockSkewMs` in the future,
   * is 400 `event_invalid`. Needs a store with `inspect`.
   * @default none: nothing is checked
   */
  readonly firstSent?: ((event: Event) => Date | undefined) | undefined
}

export interface RawReceiverOptions<Req extends AnyRequest> extends CommonReceiverOptions<Req> {
  readonly parse?: ParseDelivery<ParsedEvent> | undefined
  readonly on: object
  readonly onUnknownEvent?: WebhookHandler<never> | undefined
  readonly firstSent?: FirstSentFunction | undefined
}

export interface ResolvedReceiverOptions<Req extends AnyRequest>
  extends Pick<RawReceiverOptions<Req>, 'on' | 'source' | 'verify'> {
  readonly sender: SenderProtocol
  readonly onUnknownEvent: WebhookHandler<never> | undefined
  readonly firstSent: FirstSentFunction | undefined
  readonly onEvent: ((event: WebhookReceiverEvent) => void) | undefined
  readonly maxBodyBytes: number
  readonly ofEngine: IdempotencyOptions<Req>
}

type FirstSentFunction = (event: never) => Date | undefined

/**
 * Reads the options once, at construction. Without `parse` the sender is `byDefault`; where that is `null`, `parse` is
 * required.
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function resolveReceiverOptions<Req extends AnyRequest>(
  given: RawReceiverOptions<Req>,
  byDefault: SenderProtocol | null,
): ResolvedReceiverOptions<Req> {
  const { parse } = Object(given) as RawReceiverOptions<Req>
  const sender =
    byDefault === null || parse !== undefined ? createParsedSender(parse as ParseDelivery<ParsedEvent>) : byDefault
  const options = resolveOptions<ReceiverOptions<Req>>('webhookReceiver()', given, {
    ...RECEIVER_OPTIONS,
    parse: { rule: aFunction, isRequired: byDefault === null },
    on: { rule: createHandlersRule(sender.types), isRequired: true },
  })
  const shared = Object.keys(SHARED_OPTIONS).map((name) => [name, given[name as keyof typeof SHARED_OPTIONS]])
  const ofEngine = {
    ...optionRules.omitUndefined(Object.fromEntries(shared)),
    retentionMs: options.retentionMs,
    scope: singleTenant, // Webhook requests carry no key; `source` is the scope.
  } as unknown as IdempotencyOptions<Req>
  if (ofEngine.unknownOutcome === 'refuse' && ofEngine.effects !== 'declared') warnOfRefusedRetries()
  return { ...options, sender, ofEngine }
}

type ReceiverOptions<Req extends AnyRequest> = Omit<ResolvedReceiverOptions<Req>, 'sender' | 'ofEngine'> & {
  readonly retentionMs: number
}

/** A handler that throws leaves the outcome unknown, so every retry by the sender would be refused. */
function warnOfRefusedRetries(): void {
  warnOnce(
    'ONCE_PER_KEY_WEBHOOK_RETRIES_REFUSED',
    "A webhook receiver with unknownOutcome: 'refuse' never runs an event again after its handler threw, however often the " +
      "sender repeats it, unless it threw a CertainFailure. Use 'rerun' and let handlers look at `previousOutcome`; or " +
      "let them call mayHaveEffect() before their first effect, with effects: 'declared'.",
  )
}

const { aFunction, anInteger } = optionRules

const findSourceMistake: OptionRule = (value) =>
  typeof value === 'function' || (typeof value === 'string' && findScopeFault(value) === null)
    ? null
    : 'a name of 1 to 255 characters for the owner of the events, or a function of the request that returns one'

const findVerifyMistake: OptionRule = (value) =>
  typeof value === 'function' || value === false
    ? null
    : 'standardWebhooks(…), stripeWebhooks(…), hmacSha256(…), a function of raw bytes and headers, or false for unsigned deliveries'

/** The options of the engine that a receiver has too. */
const SHARED_OPTIONS = {
  store: requestOptions.store,
  leaseMs: requestOptions.leaseMs,
  maxRunMs: requestOptions.maxRunMs,
  /** Adyen retries for 30 days; one more day, because the last retry may arrive late. */
  retentionMs: { ...(requestOptions.retentionMs as optionRules.Option<number>), default: 31 * 24 * 3_600_000 },
  storeTimeoutMs: requestOptions.storeTimeoutMs,
  effects: requestOptions.effects,
  maxStepBytes: requestOptions.maxStepBytes,
  unknownOutcome: requestOptions.unknownOutcome,
  unknownRetentionMs: requestOptions.unknownRetentionMs,
  clockSkewMs: requestOptions.clockSkewMs,
  unconfirmedSuccess: requestOptions.unconfirmedSuccess,
  retryAfterMs: requestOptions.retryAfterMs,
}

const RECEIVER_OPTIONS = {
  source: { rule: findSourceMistake, isRequired: true },
  verify: { rule: findVerifyMistake, isRequired: true },
  parse: aFunction,
  onUnknownEvent: aFunction,
  firstSent: requestOptions.firstSent,
  maxBodyBytes: { rule: anInteger(1, Number.MAX_SAFE_INTEGER), default: 1_048_576 },
  onEvent: aFunction,
  on: optionRules.anything,
  ...SHARED_OPTIONS,
}

/**
 * Checks that a delivery comes from its sender. Receives the body's raw bytes and the request's headers, with names in
 * lower case; returns `true` or `false`.
 */
export type Verify = (raw: Buffer, headers: IncomingHttpHeaders) => boolean | Promise<boolean>

/** Who owns the events of a request: a name, or a function of the request. */
type Source<Req extends AnyRequest> = string | Scope<Req>

/**
 * Returns a reader of the source, which follows the rules of a scope: no value is coerced.
 *
 * The reader throws IdempotencyError (or rejects with it) `scope_invalid`: nothing ran and nothing was stored.
 */
export function createSourceReader<Req extends AnyRequest>(source: Source<Req>): (req: Req) => MaybePromise<string> {
  return typeof source === 'string' ? () => source : createScopeReader(source, { option: 'source', wayOut: WAY_OUT })
}

const WAY_OUT =
  'It must return a string of 1 to 255 characters that says who owns the events; respond to requests without a source ' +
  'before the receiver.'

/** What a handler receives besides the event. */
export interface WebhookContext
  extends Pick<IdempotencyContext, 'attempt' | 'previousOutcome' | 'signal' | 'deriveKey' | 'mayHaveEffect' | 'step'> {
  /** Who owns the event: the receiver's `source`. */
  readonly source: string
}

/**
 * Handles one event. Its result is awaited and ignored.
 *
 * If it throws, the sender gets 500 and sends the event again. The next run has `previousOutcome: 'unknown'`, because a
 * call that failed may have had its effect; after a `CertainFailure` it has `'failed'`.
 */
export type WebhookHandler<Event> = (event: Event, context: WebhookContext) => unknown

/** A handler for each type of event. */
export type WebhookHandlers<Event extends ParsedEvent> = {
  readonly [Type in Event['type']]?: WebhookHandler<EventOfType<Event, Type>>
}

/** The members of the union `Event` that have this type. */
export type EventOfType<Event extends ParsedEvent, Type extends string> = Event extends unknown
  ? string extends Event['type']
    ? Event
    : Type extends Event['type']
      ? Event['type'] extends Type
        ? Event
        : Event & { readonly type: Type }
      : never
  : never

export type HandlerLookup = (type: string) => WebhookHandler<never> | undefined

/** A sender's types; `null`: any. */
type EventTypes = readonly string[] | null

/**
 * Reads the handlers once. They are bound to `on`, so it can be an instance of a class where the types are known. Then
 * only these are looked up, so that a sender cannot call other members of the instance. `onUnknown` handles the types
 * that are not known; where any is, those without a handler in `on`.
 */
export function readHandlers(
  on: object,
  onUnknown: WebhookHandler<never> | undefined,
  types: EventTypes,
): HandlerLookup {
  const handlers = new Map((types ?? Object.keys(on)).map((type) => [type, (on as HandlerMembers)[type]?.bind(on)]))
  return (type) => handlers.get(type) ?? (types === null || !handlers.has(type) ? onUnknown : undefined)
}

type HandlerMembers = Readonly<Record<string, WebhookHandler<never> | undefined>>

/** Finds names that are not event types, and values that are not functions. */
function createHandlersRule(types: EventTypes): OptionRule {
  return (on) => {
    if (typeof on !== 'object' || on === null || Array.isArray(on)) {
      const known = types === null ? '' : ` (${types.join(', ')}, or those that \`parse\` returns)`
      return `an object of handlers by type${known}`
    }
    if (types === null && !isPlain(on)) {
      return ['on: expected a plain object where `parse` is given, since the types of its events are not known here']
    }
    const rules = Object.fromEntries((types ?? Object.keys(on)).map((type) => [type, aFunction]))
    return findMistakes(on, rules).map((mistake) => `on.${mistake}`)
  }
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
