import type { CommandName, Emit, OperatorCommandName, UnclaimedCommandName } from '../events/events.js'
import { isCommandTraced, traceCommand } from '../events/trace.js'
import type { MaybePromise } from '../maybe-promise.js'
import { commandMissingError } from '../misuse.js'
import type { ResolvedEngineOptions } from '../options/engine-options.js'
import type { Answer, CommandReply, StepChange } from '../record/record.js'
import type { OwnersCommand, OwnersReply, SentOperation, Store } from '../store/store.js'
import { type Backlog, getBacklog } from './backlog.js'
import type { AnswerValidator } from './reply.js'
import { type CommandSender, type CommandSubject, StoreCall } from './store-call.js'
import { getMonotonicMs } from './timers.js'

const FIRST_PAUSE_MS = 100
/** Bounds the wait for pending commands after the store is back. */
const LONGEST_PAUSE_MS = 2_000

const OF_NO_RECORD: CommandSubject = { identity: { scope: '', key: '' } }

/** Sends an engine's commands to its store, each with a time limit, and retries them in the background. */
export class StoreCalls {
  readonly backlog: Backlog
  readonly timeoutMs: number
  readonly answerFault: AnswerValidator | undefined
  readonly #store: Store
  readonly #emit: Emit

  constructor({ store, storeTimeoutMs, answerFault }: ResolvedEngineOptions, emit: Emit) {
    this.answerFault = answerFault
    this.backlog = getBacklog(store)
    this.timeoutMs = storeTimeoutMs
    this.#store = store
    this.#emit = emit
  }

  /** Sends a command for whose reply a caller waits. */
  send<Name extends SentCommand>(name: Name, by: CommandSender, now = getMonotonicMs()): StoreCall<SentReply[Name]> {
    return this.#call(name, by, () => callStore(this.#store, name, by), this.#emit, now, true)
  }

  /** Sends a command for which nobody waits: it keeps no process alive. */
  sendInBackground<Name extends SentCommand>(
    name: Name,
    by: CommandSender,
    emit = this.#emit,
  ): StoreCall<SentReply[Name]> {
    return this.#call(name, by, () => callStore(this.#store, name, by), emit, getMonotonicMs(), false)
  }

  /** The same for any other command, which `command` sends. `by`: `null` if it is about no single record; then it is not traced. */
  ask<Reply>(
    name: UnclaimedCommandName | OperatorCommandName,
    by: (CommandSubject & Partial<SentOperation>) | null,
    command: () => MaybePromise<Reply>,
    emit = this.#emit,
  ): StoreCall<Reply> {
    return this.#call(name, by, command, emit, getMonotonicMs(), true)
  }

  /** Never throws: a custom store may throw synchronously, or return an invalid reply. */
  #call<Reply>(
    name: CommandName,
    by: (CommandSubject & Partial<SentOperation>) | null,
    command: () => MaybePromise<Reply>,
    emit: Emit,
    now: number,
    isAwaited: boolean,
  ): StoreCall<Reply> {
    const call = new StoreCall<Reply>(name, by ?? OF_NO_RECORD, this, emit, now)
    if (by !== null && isCommandTraced()) traceCommand(call, by.identity, by, () => call.send(command, isAwaited))
    else call.send(command, isAwaited)
    return call
  }

  /**
   * Sends a command again, with growing pauses, after it was not answered in time; the last time at `until`. Only one
   * copy at a time: the next one follows when the previous one has failed or was lost. Each that was lost is given twice
   * as long as the one before: where one of several servers hangs, the others answer, and the client keeps every copy,
   * with its answer. A late reply to any copy counts.
   * `null`: no reply came.
   */
  sendAgain<Name extends SentCommand>(
    name: Name,
    by: CommandSender,
    first: StoreCall<SentReply[Name]>,
    until: number,
  ): Promise<SentReply[Name] | null> {
    type Reply = SentReply[Name]
    return new Promise((resolve) => {
      let isOver = false
      let wake = (): void => {}
      const over = (reply: Reply | null): void => {
        isOver = true
        resolve(reply)
        wake()
      }
      /** After one copy is answered, the other copies' events do not matter. */
      const tell: Emit = (event) => {
        if (!isOver) this.#emit(event)
      }
      const hear = (reply: Reply | null): void => (reply === null ? wake() : over(reply))
      const rest = (ms: number): Promise<void> =>
        new Promise((rested) => {
          const timer = setTimeout(rested, Math.ceil(ms)).unref()
          wake = () => {
            clearTimeout(timer)
            rested()
          }
        })

      const again = async (): Promise<void> => {
        let copy = first
        let pauseMs = FIRST_PAUSE_MS
        let lostAfterMs = this.timeoutMs
        for (let leftMs = until - getMonotonicMs(); leftMs > 0 && !isOver; leftMs = until - getMonotonicMs()) {
          await rest(Math.min(pauseMs, leftMs))
          if (isOver) return
          const isLast = getMonotonicMs() >= until
          const isOut = !copy.isReplied && !this.backlog.isLost(copy, isLast ? this.timeoutMs : lostAfterMs)
          pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
          if (isOut) continue
          if (!copy.isReplied) lostAfterMs *= 2
          copy = this.sendInBackground(name, by, tell)
          copy.onLateReply = hear
          const reply = await copy.waitForReply()
          if (reply !== null || isLast) return over(reply)
        }
        if (!isOver) over(null)
      }

      first.onLateReply = hear
      void again()
    })
  }

  /** Whether a copy will stay unanswered: the store has answered a command that was sent a time limit after it. */
  isLost(copy: Pick<StoreCall<unknown>, 'sentAt'>): boolean {
    return this.backlog.isLost(copy, this.timeoutMs)
  }
}

/** @throws IdempotencyError `command_missing`, where a store of the application's own has no such command. */
export function requireStoreCommand<Name extends OperatorCommandName>(
  store: Store,
  name: Name,
): NonNullable<Store[Name]> {
  const command = store[name]
  if (command === undefined) throw commandMissingError(name, LISTS[name])
  return command.bind(store) as NonNullable<Store[Name]>
}

const LISTS: { readonly [Name in OperatorCommandName]?: string } = { list: 'listedIfUnknown', listScope: 'listed' }

/** A command of a run. For that of a step a `SentStep` is sent. */
export type SentCommand = OwnersCommand | 'step'

export type SentReply = OwnersReply & { readonly step: CommandReply }

/** One change of a step, as it is sent, and sent again. */
export interface SentStep extends CommandSender {
  readonly step: StepChange
}

/** Sends a command to the store. */
export function callStore<Name extends SentCommand>(
  store: Store,
  name: Name,
  operation: SentOperation,
): MaybePromise<SentReply[Name]> {
  return ask(store, name, operation) as MaybePromise<SentReply[Name]>
}

function ask(store: Store, name: SentCommand, operation: SentOperation): MaybePromise<SentReply[SentCommand]> {
  const { recordKey, token, scope, fingerprint, attempt, uncertain, terms } = operation
  const { leaseMs, retentionMs, unknownRetentionMs, failedMs, unknownOutcome } = terms
  switch (name) {
    case 'begin':
      return store.begin(recordKey, {
        token,
        scope,
        fingerprint,
        leaseMs,
        retentionMs: unknownRetentionMs,
        unknownOutcome,
      })
    case 'complete': {
      const answer = operation.answer as Answer
      return store.complete(recordKey, { token, scope, fingerprint, attempt, uncertain, retentionMs, answer })
    }
    case 'renew':
      return store.renew(recordKey, { ...toOwnership(operation), leaseMs })
    case 'release': {
      const isUncertain = operation.failure?.uncertain === true
      return store.release(recordKey, { ...toOwnership(operation), uncertain: isUncertain, failedMs })
    }
    case 'step':
      if (store.step === undefined) throw new TypeError('The store has no `step`.')
      return store.step(recordKey, { ...toOwnership(operation), leaseMs, ...(operation as SentStep).step })
  }
}

/** While it is in flight its outcome would be unknown if its owner died, so it is kept as long as those are. */
function toOwnership({ token, scope, fingerprint, attempt, uncertain, terms }: SentOperation) {
  return { token, scope, fingerprint, attempt, uncertain, retentionMs: terms.unknownRetentionMs }
}
