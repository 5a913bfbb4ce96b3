import { hash } from 'node:crypto'
import { type Channel, channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel'
import type { MaybePromise } from '../maybe-promise.js'
import type { Identity, RecordName } from '../record/identity.js'
import type { BeginReply, CommandReply, IdempotencyRecord, PreviousOutcome } from '../record/record.js'
import type { Store, StoreEvent } from '../store/store.js'
import { type CommandName, type EngineEvent, type StoreFailure, toLoggableEvent } from './events.js'
import type { RefusalCode, Refused, Replayed } from './refusal.js'

/**
 * Publishes what happens in an engine to subscribers in the same process: three channels of `node:diagnostics_channel`.
 * Without subscribers, nothing is measured, created or hashed; each claim, command and event only checks for them.
 *
 * Messages contain scope and key, as events do; a subscriber decides what leaves the process. No answers, fingerprints
 * or tokens.
 */

interface TracedOperation extends RecordName {
  /**
   * Identifies a claim and its run: the same in all messages about them, and unique across processes. 32 hexadecimal
   * digits, which reveal nothing about the token that owns the record. `undefined`: an operator's command.
   */
  readonly runId: string | undefined
}

/**
 * A claim, from its call to its result: on the tracing channel `once-per-key:claim`. The same object is published each
 * time; the optional members are set from `end` or, if the claim was asynchronous, from `asyncStart` on.
 */
export interface ClaimTrace extends TracedOperation {
  /**
   * `run`: it runs; `unprotected`: it runs although its claim was not confirmed; `replay`: it gets the stored answer;
   * otherwise why it is refused.
   */
  outcome?: 'run' | 'unprotected' | 'replay' | RefusalCode
  /** The run's attempt: 1, 2, 3 …; 0: unprotected. */
  attempt?: number
  previousOutcome?: PreviousOutcome
}

/**
 * One copy of a command, from sending it to its reply, its failure or its time limit: on the tracing channel
 * `once-per-key:command`. A reply after the time limit is not published. The same object is published each time.
 */
export interface CommandTrace extends TracedOperation {
  readonly command: CommandName
  /** The run's attempt, if known: 1, 2, 3 …; for `begin` and `inspect`, that of the record which they found. */
  attempt?: number
  /**
   * `ok`: it was carried out, or had been before; `refused`: the current record does not allow it; `failed`: an error;
   * `timed_out`: no reply within `storeTimeoutMs`, so it may still be carried out.
   */
  outcome?: 'ok' | 'refused' | 'failed' | 'timed_out'
  /** For `failed` and `timed_out`: the error of the store's client. */
  error?: StoreFailure
}

/** The events of `once-per-key:event`: those of `onEvent`, and some that would be noise there. */
export type TracedEvent =
  | EngineEvent
  /** A request was refused because of its key or its body. */
  | { readonly type: 'rejected'; readonly code: string }
  /** An option function failed where an error must not escape; its default was used. */
  | { readonly type: 'option_failed'; readonly option: string; readonly error: unknown }
  /** A request without a key, or one that is not covered, was passed on unchanged. */
  | { readonly type: 'bypassed' }
  /** A run is over: its record is final, or its time has ended. Published after its other events. */
  | { readonly type: 'run_ended'; readonly scope: string; readonly key: string; readonly attempt: number }

/**
 * What happened: on the channel `once-per-key:event`. A store's own events are published once, however many engines use
 * it.
 */
export interface EventTrace {
  readonly event: TracedEvent
  /** The run of the event; `undefined` if it has none. `claimed` and `unprotected` begin a run, `run_ended` ends it. */
  readonly runId: string | undefined
}

const claims: TracingChannel<object, ClaimTrace> = tracingChannel('once-per-key:claim')
const commands: TracingChannel<object, CommandTrace> = tracingChannel('once-per-key:command')
const events: Channel = channel('once-per-key:event')

/** Publishes an event before calling its listener. `token`: of the event's run. */
export function publishBefore<Event extends TracedEvent>(listener: (event: Event) => void) {
  return (event: Event, token?: string): void => {
    traceEvent(event, token)
    listener(event)
  }
}

export function isEventTraced(): boolean {
  return events.hasSubscribers
}

export function traceEvent(event: TracedEvent, token?: string): void {
  if (!events.hasSubscribers) return
  events.publish({ event: toLoggableEvent(event), runId: computeRunId(token) } satisfies EventTrace)
}

export function traceStore(store: Store): void {
  if (store.observe === undefined || observed.has(store)) return
  observed.add(store)
  store.observe((event: StoreEvent) => traceEvent(event))
}

const observed = new WeakSet<Store>()

/** The result of a claim; an engine's `Claimed`. */
type ClaimResult =
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

export function traceClaim<Each extends ClaimResult>(
  { namespace, scope, key }: Identity,
  token: string,
  claim: () => MaybePromise<Each>,
): MaybePromise<Each> {
  const message: ClaimTrace = { namespace, scope, key, runId: computeRunId(token) }
  return traceCall(claims, message, claim, (told) => Object.assign(message, toClaimResult(told)))
}

function toClaimResult(told: ClaimResult): Pick<ClaimTrace, 'outcome' | 'attempt' | 'previousOutcome'> {
  switch (told.action) {
    case 'execute': {
      const { attempt, previousOutcome, isProtected } = told.run
      return { outcome: isProtected ? 'run' : 'unprotected', attempt, previousOutcome }
    }
    case 'replay':
      return { outcome: 'replay' }
    case 'refuse':
      return { outcome: told.code }
  }
}

/** A command; a `StoreCall`. */
interface Call {
  readonly command: CommandName
  readonly reply: unknown
  readonly isReplied: boolean
  readonly failure: StoreFailure | undefined
  waitForReply(): MaybePromise<unknown>
}

export function isCommandTraced(): boolean {
  return commands.hasSubscribers
}

/** Sends a command and publishes it. `terms`: the owner's arguments, if it is an owner's. */
export function traceCommand(
  call: Call,
  { namespace, scope, key }: RecordName,
  { token, attempt }: { readonly token?: string; readonly attempt?: number },
  send: () => void,
): void {
  const message: CommandTrace = { command: call.command, namespace, scope, key, runId: computeRunId(token) }
  if (attempt !== undefined && attempt > 0) message.attempt = attempt
  const sent = (): MaybePromise<unknown> => {
    send()
    return call.waitForReply()
  }
  void traceCall(commands, message, sent, (reply) => {
    if (reply !== null) return void Object.assign(message, toCommandResult(reply as Reply))
    message.outcome = call.isReplied ? 'failed' : 'timed_out'
    if (call.failure !== undefined) message.error = call.failure
    commands.error.publish(message)
  })
}

/**
 * Publishes the beginning and the end of a call, as `traceSync` or `tracePromise` of the channel would, by what the call returns. Events
 * alone cannot replace the wrapping: `runStores` makes the context of a subscriber the active one while the store's client makes its own
 * spans. `known` sets the outcome.
 */
function traceCall<Message extends object, Result>(
  { start, end, asyncStart, asyncEnd }: TracingChannel<object, Message>,
  message: Message,
  call: () => MaybePromise<Result>,
  known: (result: Result) => void,
): MaybePromise<Result> {
  const result = start.runStores(message, call)
  if (!(result instanceof Promise)) known(result)
  end.publish(message)
  if (result instanceof Promise) {
    const ended = (later: Result): void => {
      known(later)
      asyncStart.publish(message)
      asyncEnd.publish(message)
    }
    result.then(ended, () => {}) // Claims do not reject; if one did, whoever waits for it hears that.
  }
  return result
}

type Reply = BeginReply | CommandReply | { readonly record: IdempotencyRecord | null }

function toCommandResult(reply: Reply): Pick<CommandTrace, 'outcome' | 'attempt'> {
  if ('acquired' in reply) {
    return reply.acquired
      ? { outcome: 'ok', attempt: reply.attempt }
      : { outcome: 'refused', attempt: reply.record.attempt }
  }
  if ('ok' in reply) return { outcome: reply.ok ? 'ok' : 'refused' }
  return { outcome: 'ok', ...(reply.record !== null && { attempt: reply.record.attempt }) }
}

/** Two runs differ in it, since their tokens do; it does not lead back to the token, which is 128 random bits. */
function computeRunId(token: string | undefined): string | undefined {
  return token === undefined ? undefined : hash('sha256', `once-per-key run ${token}`, 'hex').slice(0, 32)
}
