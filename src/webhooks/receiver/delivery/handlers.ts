import { type IdempotencyContext, mistakesIn, optionRules } from '../../../core/index.js'
import type { ParsedEvent } from '../parse.js'

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

/** Looks up the handler by the event's type, as sent. */
export type HandlerOf = (type: string) => WebhookHandler<never> | undefined

/** A sender's types; `null`: any. */
type Types = readonly string[] | null

/**
 * Reads the handlers once. They are bound to `on`, so it can be an instance of a class where the types are known. Then
 * only these are looked up, so that a sender cannot call other members of the instance. `onUnknown` handles the types
 * that are not known; where any is, those without a handler in `on`.
 */
export function handlersIn(on: object, onUnknown: WebhookHandler<never> | undefined, types: Types): HandlerOf {
  const handlers = new Map((types ?? Object.keys(on)).map((type) => [type, (on as Members)[type]?.bind(on)]))
  return (type) => handlers.get(type) ?? (types === null || !handlers.has(type) ? onUnknown : undefined)
}

type Members = Readonly<Record<string, WebhookHandler<never> | undefined>>

/** All mistakes in `on`: names that are not event types, and values that are not functions. */
export function mistakesInHandlers(on: unknown, types: Types): string[] {
  if (typeof on !== 'object' || on === null || Array.isArray(on)) return []
  if (types === null && !isPlain(on)) {
    return ['on: expected a plain object where `parse` is given, since the types of its events are not known here']
  }
  const rules = Object.fromEntries((types ?? Object.keys(on)).map((type) => [type, optionRules.aFunction]))
  return mistakesIn(on, on, rules).map((mistake) => `on.${mistake}`)
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
