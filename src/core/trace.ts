import { hash } from 'node:crypto'
import { type Channel, channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel'
import type { CommandName, Emit, EngineEvent, StoreFailure } from './events.js'
import type { Identity, RecordName } from './identity.js'
import type { MaybePromise } from './maybe-promise.js'
import type { RefusalCode, Refused, Replayed } from './outcome.js'
import type { BeginReply, CommandReply, IdempotencyRecord, PreviousOutcome } from './record.js'
import type { Store, StoreEvent } from './store.js'

/*
 * What goes on in an engine, for whoever listens in the same process: three channels of `node:diagnostics_channel`. Where nobody
 * listens, nothing is measured, made or hashed: each claim, command and event asks that once.
 *
 * Messages name scope and key, as events do; a subscriber decides what leaves the process. No answers, no fingerprints, no tokens.
 */

/** Which operation a message is about. */
interface AboutOperation extends RecordName {
  /**
   * Of a claim and the run that it becomes: the same in all messages about them, and like no other's in any process. 32
   * hexadecimal digits, which tell nothing of the token that owns the record. `undefined`: an operator's command.
   */
  readonly runId: string | undefined
}

/**
 * A claim, from its call to what the operation is told: on the tracing channel `once-per-key:claim`. The same object is
 * published each time; what is optional is there from `end`, or, where it was waited for, from `asyncStart` on.
 */
export interface ClaimTrace extends AboutOperation {
  /** `run`: it runs; `unprotected`: it runs although its claim was not confirmed; `replay`: it is given the stored answer; or why it is refused. */
  outcome?: 'run' | 'unprotected' | 'replay' | RefusalCode
  /** Of the run: 1, 2, 3 …; 0: unprotected. */
  attempt?: number
  previousOutcome?: PreviousOutcome
}

/**
 * One copy of a command, from its sending to its reply, its failure or its time limit: on the tracing channel
 * `once-per-key:command`. What is answered behind the time limit is not told. The same object is published each time.
 */
export interface CommandTrace extends AboutOperation {
  readonly command: CommandName
  /** Of the run, as far as it is known: 1, 2, 3 …; of `begin` and `inspect`, that of the record which they found. */
  attempt?: number
  /**
   * `ok`: it was carried out, or had been; `refused`: the record that stands does not allow it; `failed`: an error;
   * `timed_out`: no reply in `storeTimeoutMs`, so it may still be carried out.
   */
  outcome?: 'ok' | 'refused' | 'failed' | 'timed_out'
  /** Of `failed` and `timed_out`: the words of the store's client. */
  error?: StoreFailure
}

/** What `once-per-key:event` tells: what `onEvent` hears, and what would be noise there. */
export type TracedEvent =
  | EngineEvent
  /** A request was refused because of its key or its body. */
  | { readonly type: 'rejected'; readonly code: string }
  /** A function among the options failed where nothing may fail; its default was used. */
  | { readonly type: 'option_failed'; readonly option: string; readonly error: unknown }
  /** A request without a key, or one that is not covered, was handed on untouched. */
  | { readonly type: 'bypassed' }
  /** A run is over: its record stands, or its time is over. Behind its other events. */
  | { readonly type: 'run_ended'; readonly scope: string; readonly key: string; readonly attempt: number }

/** What happened: on the channel `once-per-key:event`. What a store tells of itself comes once, however many engines use it. */
export interface EventTrace {
  readonly event: TracedEvent
  /** Of the run whose event it is; `undefined`: it is no run's. `claimed` and `unprotected` begin one, `run_ended` ends it. */
  readonly runId: string | undefined
}

const claims: TracingChannel<unknown, ClaimTrace> = tracingChannel('once-per-key:claim')
const commands: TracingChannel<unknown, CommandTrace> = tracingChannel('once-per-key:command')
const events: Channel = channel('once-per-key:event')

/** Publishes an event, before its listener hears it. `token`: of the run whose event it is. */
export function traced<Event extends TracedEvent>(listener: (event: Event) => void) {
  return (event: Event, token?: string): void => {
    traceEvent(event, token)
    listener(event)
  }
}

export function traceEvent(event: TracedEvent, token?: string): void {
  if (events.hasSubscribers) events.publish({ event, runId: runIdOf(token) } satisfies EventTrace)
}

/** Publishes that a run is over. */
export function traceRunEnd({ scope, key }: Identity, attempt: number, token: string): void {
  if (events.hasSubscribers) traceEvent({ type: 'run_ended', scope, key, attempt }, token)
}

/** Publishes what a store tells of itself. */
export function traceStore(store: Store): void {
  if (store.observe === undefined || observed.has(store)) return
  observed.add(store)
  store.observe((event: StoreEvent) => traceEvent(event))
}

const observed = new WeakSet<Store>()

/** What a claim is told; an engine's `Claimed`. */
type Told =
  | {
      readonly action: 'execute'
      readonly run: {
        readonly attempt: number
        readonly previousOutcome: PreviousOutcome
        readonly isProtected: boolean
      }
    }
  | Replayed
  | Refused

export function isClaimTraced(): boolean {
  return claims.hasSubscribers
}

/** Makes a claim, and tells of it. */
export function traceClaim<Each extends Told>(
  { namespace, scope, key }: Identity,
  token: string,
  claim: () => MaybePromise<Each>,
): MaybePromise<Each> {
  const message: ClaimTrace = { namespace, scope, key, runId: runIdOf(token) }
  return around(claims, message, claim, (told) => {
    switch (told.action) {
      case 'execute': {
        const { attempt, previousOutcome, isProtected } = told.run
        Object.assign(message, { outcome: isProtected ? 'run' : 'unprotected', attempt, previousOutcome })
        break
      }
      case 'replay':
        message.outcome = 'replay'
        break
      case 'refuse':
        message.outcome = told.code
    }
    return false
  })
}

/** A command that was sent; a `StoreCall`. */
interface Call {
  readonly reply: MaybePromise<unknown>
  readonly isAnswered: boolean
}

export function isCommandTraced(): boolean {
  return commands.hasSubscribers
}

/** Sends a command, and tells of it. `terms`: what it comes with, where it is an owner's. */
export function traceCommand<Sent extends Call>(
  command: CommandName,
  { namespace, scope, key }: RecordName,
  terms: { readonly token?: string; readonly attempt?: number },
  emit: Emit,
  send: (emit: Emit) => Sent,
): Sent {
  const { token, attempt } = terms
  const message: CommandTrace = { command, namespace, scope, key, runId: runIdOf(token) }
  if (attempt !== undefined && attempt > 0) message.attempt = attempt
  const heard: Emit = (event) => {
    if (event.type === 'store_failed') message.error = event.error
    emit(event)
  }
  let call: Sent | undefined
  const sent = (): MaybePromise<unknown> => {
    call = send(heard)
    return call.reply
  }
  void around(commands, message, sent, (reply) => {
    if (reply === null) message.outcome = call?.isAnswered ? 'failed' : 'timed_out'
    else Object.assign(message, meaningOf(reply as Reply))
    return reply === null
  })
  return call as Sent
}

type Reply = BeginReply | CommandReply | { readonly record: IdempotencyRecord | null }

function meaningOf(reply: Reply): Pick<CommandTrace, 'outcome' | 'attempt'> {
  if ('acquired' in reply) {
    return reply.acquired
      ? { outcome: 'ok', attempt: reply.attempt }
      : { outcome: 'refused', attempt: reply.record.attempt }
  }
  if ('ok' in reply) return { outcome: reply.ok ? 'ok' : 'refused' }
  return { outcome: 'ok', ...(reply.record !== null && { attempt: reply.record.attempt }) }
}

/** As `traceSync` or `tracePromise` of the channel, by what the work returns. `tell` completes the message; whether it failed. */
function around<Message extends object, Result>(
  tracing: TracingChannel<unknown, Message>,
  message: Message,
  work: () => MaybePromise<Result>,
  tell: (result: Result) => boolean,
): MaybePromise<Result> {
  const result = tracing.start.runStores(message, work)
  if (result instanceof Promise) {
    tracing.end.publish(message)
    const ended = (later: Result): void => {
      if (tell(later)) tracing.error.publish(message)
      tracing.asyncStart.publish(message)
      tracing.asyncEnd.publish(message)
    }
    result.then(ended, () => {}) // Neither claims nor commands reject; if one did, whoever waits for it hears that.
  } else {
    if (tell(result)) tracing.error.publish(message)
    tracing.end.publish(message)
  }
  return result
}

/** Two runs differ in it, since their tokens do; it does not lead back to the token, which is 128 random bits. */
function runIdOf(token: string | undefined): string | undefined {
  return token === undefined ? undefined : hash('sha256', `once-per-key run ${token}`, 'hex').slice(0, 32)
}
