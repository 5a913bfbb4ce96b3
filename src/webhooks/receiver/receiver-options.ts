import type { IncomingMessage } from 'node:http'
import { checkOptions, type OptionRule, optionRules, scopeFault, warnOnce } from '../../core/index.js'
import { type IdempotencyOptions, mistakesInOptions, singleTenant } from '../../http/index.js'
import { type UnknownEvent, webhookEventTypes } from '../events/event.js'
import { mistakesInHandlers, type WebhookHandler, type WebhookHandlers } from './handlers.js'
import type { Parse, ParsedEvent } from './parse.js'
import type { WebhookReceiverEvent } from './receiver-event.js'
import type { Source } from './source.js'
import type { Verify } from './verify.js'

/** What receivers of all senders have in common. All durations are integers, in milliseconds. */
export interface CommonReceiverOptions<Req extends IncomingMessage = IncomingMessage>
  extends Pick<
    IdempotencyOptions,
    | 'store'
    | 'leaseMs'
    | 'maxRunMs'
    | 'storeTimeoutMs'
    | 'effects'
    | 'unknownOutcome'
    | 'unknownRetentionMs'
    | 'unconfirmedSuccess'
    | 'retryAfterMs'
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

  /**
   * How long an event that was handled is remembered. At least `maxRunMs + leaseMs`.
   * @default 2_678_400_000 (31 days): the longest that senders are known to repeat a delivery by themselves is 30 days
   */
  readonly retentionMs?: number

  /**
   * A larger body is refused with 413.
   * @default 1_048_576 (1 MiB): some hundred times a large event
   */
  readonly maxBodyBytes?: number

  /**
   * Hears what happens, and why a delivery was refused. A listener that throws changes nothing.
   * @default none: what a handler throws goes to `console.error`, and the process warns once of each reason for a refusal
   */
  readonly onEvent?: (event: WebhookReceiverEvent) => void
}

/** For the payments service's events: its envelope, at `POST …/api/service/webhook-event/<type>`, as application/json. */
export interface WebhookReceiverOptions<Req extends IncomingMessage = IncomingMessage>
  extends CommonReceiverOptions<Req> {
  readonly parse?: undefined

  /** A handler for each type of event. */
  readonly on: WebhookHandlers

  /**
   * Handles events of types that this version does not know.
   *
   * Without it they are refused with 501, like those of a known type that has no handler in `on`, with an event
   * (`rejected`, `event_unhandled`): senders repeat what is not acknowledged for days, so a handler that is deployed by then
   * still gets them, and nothing is lost silently. Subscribe to what you handle; whoever wants to ignore the rest says so:
   * `onUnknownEvent: () => {}`.
   * @default none
   */
  readonly onUnknownEvent?: WebhookHandler<UnknownEvent>
}

/** For any other sender's events, such as Stripe's, GitHub's or Shopify's. */
export interface ParsedReceiverOptions<Event extends ParsedEvent, Req extends IncomingMessage = IncomingMessage>
  extends CommonReceiverOptions<Req> {
  /**
   * Reads a delivery. What it answers is what handlers get, typed so where `parse` stands before `on`. Each request that
   * reaches the receiver is a delivery, whatever its path and content type: mount it at a path of its own.
   */
  readonly parse: Parse<Event>

  /** A handler for each type of event, in a plain object. */
  readonly on: WebhookHandlers<Event>

  /**
   * Handles events of types that have no handler in `on`.
   *
   * Without it they are acknowledged, with an event (`ignored`): such senders send more types than anybody handles, and
   * disable a receiver that refuses them.
   * @default none
   */
  readonly onUnknownEvent?: WebhookHandler<Event>
}

/** What was given, whichever sender it is for. */
export interface GivenReceiverOptions<Req extends IncomingMessage> extends CommonReceiverOptions<Req> {
  readonly parse?: Parse<ParsedEvent> | undefined
  readonly on: object
  readonly onUnknownEvent?: WebhookHandler<never>
}

export interface ResolvedReceiverOptions<Req extends IncomingMessage>
  extends Pick<GivenReceiverOptions<Req>, 'on' | 'source' | 'verify'> {
  readonly parse: Parse<ParsedEvent> | undefined
  readonly onUnknownEvent: WebhookHandler<never> | undefined
  readonly onEvent: ((event: WebhookReceiverEvent) => void) | undefined
  readonly maxBodyBytes: number
  /** What the engine is made of. */
  readonly ofEngine: IdempotencyOptions<Req>
}

/** Adyen repeats a delivery for 30 days; a day more, since the last try may come late. */
const RETENTION_MS = 31 * 24 * 3_600_000

/**
 * Reads the options once, at construction.
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function resolveReceiverOptions<Req extends IncomingMessage>(
  given: GivenReceiverOptions<Req>,
): ResolvedReceiverOptions<Req> {
  const {
    source,
    verify,
    parse,
    on,
    onUnknownEvent,
    onEvent,
    maxBodyBytes = 1_048_576,
    ...others
  } = Object(given) as GivenReceiverOptions<Req>
  const own = { source, verify, parse, on, onUnknownEvent, onEvent, maxBodyBytes }
  const shared = Object.entries(others).filter(([name, value]) => SHARED.includes(name) && value !== undefined)
  const ofEngine = {
    retentionMs: RETENTION_MS,
    ...Object.fromEntries(shared),
    scope: singleTenant, // Its requests carry no key: `source` stands for the scope.
  } as unknown as IdempotencyOptions<Req>

  const more = [...mistakesInHandlers(on, parse !== undefined), ...mistakesInOptions(ofEngine)]
  checkOptions('webhookReceiver()', given, own, RULES, { required: ['source', 'verify', 'on'], more })
  if (ofEngine.unknownOutcome === 'refuse' && ofEngine.effects !== 'declared') warnOfRefusedRetries()
  return { ...own, ofEngine }
}

/** A handler's throw leaves the outcome unknown, so the tries that senders make to repair it would all be refused. */
function warnOfRefusedRetries(): void {
  warnOnce(
    'ONCE_PER_KEY_WEBHOOK_RETRIES_REFUSED',
    "A webhook receiver with unknownOutcome: 'refuse' does not run an event again whose handler threw, however often its " +
      "sender repeats it, unless it threw a CertainFailure. Use 'rerun' and let handlers look at `previousOutcome`; or " +
      "let them call mayHaveEffect() before their first effect, with effects: 'declared'.",
  )
}

const { aFunction, anInteger } = optionRules

const OWN_RULES: Readonly<Record<string, OptionRule>> = {
  source: (value) =>
    typeof value === 'function' || (typeof value === 'string' && scopeFault(value) === null)
      ? null
      : 'a name of 1 to 255 characters, or a function of the request, that says whose events they are',
  verify: (value) =>
    typeof value === 'function' || value === false
      ? null
      : 'standardWebhooks(…), hmacSha256(…), a function of raw bytes and headers, or false for deliveries that are unsigned',
  parse: aFunction,
  on: (value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? null
      : `an object of handlers by type (${webhookEventTypes.join(', ')}, or what \`parse\` answers)`,
  onUnknownEvent: aFunction,
  maxBodyBytes: anInteger(1, Number.MAX_SAFE_INTEGER),
  onEvent: aFunction,
}

/** Held to the engine's rules. */
const SHARED: readonly string[] = [
  'store',
  'leaseMs',
  'maxRunMs',
  'retentionMs',
  'storeTimeoutMs',
  'effects',
  'unknownOutcome',
  'unknownRetentionMs',
  'unconfirmedSuccess',
  'retryAfterMs',
]
const RULES = { ...OWN_RULES, ...Object.fromEntries(SHARED.map((name) => [name, (): null => null])) }
