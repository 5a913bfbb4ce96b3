import { type IdempotencyContext, mistakesIn, optionRules } from '../../core/index.js'
import { type KnownWebhookEvent, webhookEventTypes } from '../events/event.js'
import type { ParsedEvent } from './parse.js'

/** What a handler of events gets beside the event. */
export interface WebhookContext
  extends Pick<IdempotencyContext, 'attempt' | 'previousOutcome' | 'signal' | 'deriveKey' | 'mayHaveEffect'> {
  /** Whose event it is. */
  readonly source: string
}

/**
 * Handles one event. What it returns is awaited and dropped.
 *
 * When it throws, its sender is told 500 and sends the event again. The next run hears `previousOutcome: 'unknown'`, since
 * a call that failed may have had its effect; after a `CertainFailure` it hears `'failed'`.
 */
export type WebhookHandler<Event> = (event: Event, context: WebhookContext) => unknown

/** A handler for each type of event. */
export type WebhookHandlers<Event extends ParsedEvent = KnownWebhookEvent> = {
  readonly [Type in Event['type']]?: WebhookHandler<EventOfType<Event, Type>>
}

/** Those of the events that have this type. */
export type EventOfType<Event extends ParsedEvent, Type extends string> = Event extends unknown
  ? string extends Event['type']
    ? Event
    : Type extends Event['type']
      ? Event['type'] extends Type
        ? Event
        : Event & { readonly type: Type }
      : never
  : never

/** By the event's type, as it was sent. */
export type HandlerOf = (type: string) => WebhookHandler<never> | undefined

/**
 * Reads the handlers once. They are called as methods, so that an object of a class can be `on`: but only where the types
 * are known, since a sender must not be able to call whatever else is in it. `onUnknown` is for types that nobody knows.
 */
export function handlersIn(on: object, onUnknown: WebhookHandler<never> | undefined, hasParse: boolean): HandlerOf {
  const types: readonly string[] = hasParse ? Object.keys(on) : webhookEventTypes
  const handlers = new Map(types.map((type) => [type, (on as Members)[type]?.bind(on)]))
  return (type) => handlers.get(type) ?? (hasParse || !handlers.has(type) ? onUnknown : undefined)
}

type Members = Readonly<Record<string, WebhookHandler<never> | undefined>>

/** All that is wrong with `on`: names that are no type of event, and what is no function. */
export function mistakesInHandlers(on: unknown, hasParse: boolean): string[] {
  if (typeof on !== 'object' || on === null || Array.isArray(on)) return []
  if (hasParse && !isPlain(on)) {
    return ['on: expected a plain object where `parse` is given, since the types of its events are not known here']
  }
  const types: readonly string[] = hasParse ? Object.keys(on) : webhookEventTypes
  return mistakesIn(on, on, Object.fromEntries(types.map((type) => [type, optionRules.aFunction]))).map(
    (mistake) => `on.${mistake}`,
  )
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
