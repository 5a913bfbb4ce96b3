import type { IncomingMessage } from 'node:http'
import type { IdempotencyContext, IdempotencyEvent, IdempotencyOptions } from '../core/index.js'
import { mistakesInOptions } from '../core/option-rules.js'
import { DEFAULTS } from '../core/options.js'
import { scopeFault, singleTenant } from '../core/scope.js'
import {
  aFunction,
  mistakesIn,
  presentIn,
  type Rule,
  refuseMistakes,
  refuseNonObject,
  wholeNumber,
} from '../core/validation.js'
import { type KnownWebhookEvent, type UnknownEvent, webhookEventTypes } from './event.js'
import type { RefusalCode } from './refusal.js'
import type { Verify } from './signature.js'
import type { Source } from './source.js'

/** What a handler of events gets beside the event. */
export interface WebhookContext
  extends Pick<
    IdempotencyContext,
    'attempt' | 'previousOutcome' | 'signal' | 'deriveKey' | 'mayHaveEffect' | 'context'
  > {
  /** Whose event it is. */
  readonly source: string
}

/** Handles one event. What it returns is awaited and dropped; when it throws, the event is released and sent again. */
export type WebhookHandler<Event> = (event: Event, context: WebhookContext) => unknown

/** A handler for each type of event. */
export type WebhookHandlers = {
  readonly [Event in KnownWebhookEvent as Event['type']]?: WebhookHandler<Event>
}

/** What happened. No bodies, no signatures. */
export type WebhookReceiverEvent =
  | IdempotencyEvent
  /** A delivery was refused before anything ran. */
  | { readonly type: 'rejected'; readonly code: Exclude<RefusalCode, 'handler_failed' | 'receiver_failed'> }
  /** A handler threw; its event is released, and its sender was told 500. */
  | {
      readonly type: 'handler_failed'
      readonly scope: string
      readonly key: string
      readonly attempt: number
      readonly error: unknown
    }
  /** Misuse by the application, or a failure, where there is no `next` to tell; the sender was told 500. */
  | { readonly type: 'receiver_failed'; readonly error: unknown }

/** All durations are whole milliseconds. */
export interface WebhookReceiverOptions<Req extends IncomingMessage = IncomingMessage>
  extends Pick<
    IdempotencyOptions,
    'store' | 'leaseMs' | 'maxRunMs' | 'storeTimeoutMs' | 'unknownOutcome' | 'retryAfterMs'
  > {
  /**
   * Whose events they are: the sender, or the merchant account that subscribed, as a name or as a function of the request.
   * Two sources never meet, so ids need not be unique across them. Two receivers on one store that name one source are one:
   * what one has handled is a repeat to the other. A function that answers anything but a string of 1 to 255 characters is
   * misuse, passed to `next` as `scope_invalid`.
   */
  readonly source: Source<Req>

  /**
   * Whether a delivery comes from its sender: `standardWebhooks(…)`, `hmacSha256(…)`, or a function of raw bytes and
   * headers. `false`: 401. Anything but true or false, a throw included, is passed to `next` as `verify_failed` and runs
   * nothing: a key that cannot be fetched must not look like a forgery. So a library that throws for a wrong signature
   * belongs in a `try`.
   *
   * There is no default. `verify: false` says that deliveries are unsigned: whoever finds the address can send events.
   */
  readonly verify: Verify | false

  /** A handler for each type of event. */
  readonly on: WebhookHandlers

  /**
   * Handles events of types that this version does not know.
   *
   * Without it they are refused with 501, like those of a known type that has no handler in `on`, with an event
   * (`rejected`, `event_unhandled`): senders repeat what is not acknowledged for days, so a handler that is deployed by then
   * still gets them, and nothing is lost in silence. Subscribe to what you handle; whoever wants to ignore the rest says so:
   * `onUnknownEvent: () => {}`.
   * @default none
   */
  readonly onUnknownEvent?: WebhookHandler<UnknownEvent>

  /**
   * How long an event that was handled is remembered. At least `maxRunMs + leaseMs`.
   * @default 691_200_000 (8 days): senders repeat a delivery for about a week
   */
  readonly retentionMs?: number

  /**
   * A larger body is refused with 413.
   * @default 1_048_576 (1 MiB): some hundred times a large event
   */
  readonly maxBodyBytes?: number

  /**
   * Hears what happens. A listener that throws changes nothing. Without one, what a handler throws goes to
   * `console.error`, since nobody else would hear of it.
   * @default none
   */
  readonly onEvent?: (event: WebhookReceiverEvent) => void
}

type Optional = 'onUnknownEvent' | 'onEvent'

export type ResolvedReceiverOptions<Req extends IncomingMessage> = Required<
  Pick<WebhookReceiverOptions<Req>, 'source' | 'verify' | 'on' | 'maxBodyBytes'>
> &
  Pick<WebhookReceiverOptions<Req>, Optional> & {
    /** What the engine is made of. */
    readonly ofEngine: IdempotencyOptions<Req>
  }

const EIGHT_DAYS_MS = 8 * 24 * 3_600_000

/**
 * Reads the options once, at construction.
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function resolveReceiverOptions<Req extends IncomingMessage>(
  given: WebhookReceiverOptions<Req>,
): ResolvedReceiverOptions<Req> {
  refuseNonObject('webhookReceiver()', given)
  const present = presentIn(given)
  const names = Object.keys(OWN_RULES)
  const own = Object.fromEntries(Object.entries(present).filter(([name]) => names.includes(name)))
  const shared = Object.fromEntries(Object.entries(present).filter(([name]) => SHARED.includes(name)))
  // Its requests carry no key: `source` stands for the scope.
  const ofEngine = { retentionMs: EIGHT_DAYS_MS, ...shared, scope: singleTenant } as unknown as IdempotencyOptions<Req>

  refuseMistakes('webhookReceiver()', [
    ...mistakesIn(given, present, { ...OWN_RULES, ...SHARED_NAMES }, ['source', 'verify', 'on']),
    ...mistakesInHandlers(given.on),
    ...mistakesInOptions({} as typeof ofEngine, { ...DEFAULTS, ...ofEngine }),
  ])
  return {
    maxBodyBytes: 1_048_576,
    ...(own as Pick<ResolvedReceiverOptions<Req>, 'source' | 'verify' | 'on'>),
    ofEngine,
  }
}

const OWN_RULES: Readonly<Record<string, Rule>> = {
  source: (value) =>
    typeof value === 'function' || (typeof value === 'string' && scopeFault(value) === null)
      ? null
      : 'a name of 1 to 255 characters, or a function of the request, that says whose events they are',
  verify: (value) =>
    typeof value === 'function' || value === false
      ? null
      : 'standardWebhooks(…), hmacSha256(…), a function of raw bytes and headers, or false for deliveries that are unsigned',
  on: (value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? null
      : `an object of handlers by type (${webhookEventTypes.join(', ')})`,
  onUnknownEvent: aFunction,
  maxBodyBytes: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  onEvent: aFunction,
}

/** By the core's rules, which the engine's options are held to. */
const SHARED = ['store', 'leaseMs', 'maxRunMs', 'retentionMs', 'storeTimeoutMs', 'unknownOutcome', 'retryAfterMs']
const SHARED_NAMES = Object.fromEntries(SHARED.map((name) => [name, (): null => null]))

function mistakesInHandlers(on: unknown): string[] {
  if (typeof on !== 'object' || on === null) return []
  const rules = Object.fromEntries(webhookEventTypes.map((type) => [type, aFunction]))
  return mistakesIn(on, on, rules).map((mistake) => `on.${mistake}`)
}
