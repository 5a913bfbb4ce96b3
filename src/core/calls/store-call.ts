import { type CommandName, type Emit, type StoreFailure, toStoreFailure } from '../events/events.js'
import { isThenable, type MaybePromise } from '../maybe-promise.js'
import type { RecordName } from '../record/identity.js'
import type { SentOperation } from '../store/store.js'
import type { Backlog } from './backlog.js'
import { type AnswerValidator, findReplyFault } from './reply.js'
import { startTimer, waitBegan, waitEnded } from './timers.js'

/** The record of a command, as in events, and its fingerprint. */
export interface CommandSubject {
  readonly identity: RecordName & { readonly fingerprint?: string }
}

export interface CommandSender extends CommandSubject, SentOperation {}

interface CallSettings {
  readonly backlog: Backlog
  readonly timeoutMs: number
  readonly answerFault: AnswerValidator | undefined
}

/** A command that was not answered in time. It may still take effect. */
class StoreTimeout extends Error {
  override readonly name = 'StoreTimeout'
}

/** One copy of a command that was sent. What only waiting needs is made when it has to wait: `Pending`. */
export class StoreCall<Reply> {
  readonly sentAt: number
  readonly command: CommandName
  /**
   * `undefined`: neither a reply nor its time limit has come yet. `null`: it failed or timed out, so its outcome is
   * unknown; an event was emitted.
   */
  reply: Reply | null | undefined = undefined
  /** A reply or an error has come, perhaps late. */
  isReplied = false
  /** Why it has no reply. */
  failure: StoreFailure | undefined = undefined
  readonly #about: CommandSubject
  readonly #calls: CallSettings
  readonly #emit: Emit
  /** Absent if it was answered at once. */
  #pending: PendingCall<Reply> | undefined = undefined

  constructor(command: CommandName, about: CommandSubject, calls: CallSettings, emit: Emit, sentAt: number) {
    this.command = command
    this.sentAt = sentAt
    this.#about = about
    this.#calls = calls
    this.#emit = emit
  }

  /** If nothing comes at once, its time limit begins. */
  send(command: () => MaybePromise<Reply>, isAwaited: boolean): void {
    try {
      this.take(command())
    } catch (error) {
      this.onError(error)
    }
    if (this.reply === undefined) this.#pending = new PendingCall(this, this.#calls, isAwaited)
  }

  /** Set while it is not answered: called with a reply that comes after the time limit; `null`: an error. */
  set onLateReply(hear: (reply: Reply | null) => void) {
    if (this.#pending !== undefined) this.#pending.onLateReply = hear
  }

  take(answer: MaybePromise<Reply>): void {
    if (!isThenable(answer)) {
      this.onReply(answer)
      return
    }
    // A foreign promise is wrapped in our own, as `await` does: a foreign `then` may throw, or call back twice.
    Promise.resolve(answer).then(
      (reply) => this.onReply(reply),
      (error) => this.onError(error),
    )
  }

  /** The reply, as a promise if it has not come yet. */
  waitForReply(): MaybePromise<Reply | null> {
    return this.reply !== undefined ? this.reply : (this.#pending as PendingCall<Reply>).waitForReply()
  }

  onReply(reply: Reply): void {
    if (this.isReplied) return
    const fault = this.#findReplyFault(reply)
    if (fault !== null) {
      this.onError(fault)
      return
    }
    this.#calls.backlog.onReply(this)
    this.#onOutcome(reply)
  }

  onError(error: unknown): void {
    if (this.isReplied) return
    this.#onOutcome(null, error)
  }

  #findReplyFault(reply: Reply): unknown {
    try {
      const fault = findReplyFault(this.command, reply, this.#about.identity.fingerprint, this.#calls.answerFault)
      if (fault === null) return null
      const { member, expected } = fault
      const where = member === '' ? '' : `${member}: `
      const message = `The store returned an invalid reply to \`${this.command}\`: ${where}expected ${expected}.`
      return Object.assign(new TypeError(message), { code: 'reply_invalid' })
    } catch (error) {
      return error // Reading its properties threw.
    }
  }

  #onOutcome(reply: Reply | null, error?: unknown): void {
    this.isReplied = true
    if (this.#pending !== undefined) this.#pending.onOutcome(reply, error)
    else {
      if (reply === null) this.tell(error)
      this.reply = reply
    }
  }

  tell(error: unknown): void {
    const { scope, key } = this.#about.identity
    this.failure = toStoreFailure(error)
    this.#emit({ type: 'store_failed', scope, key, command: this.command, error: this.failure })
  }
}

/** A call that was not answered at once. Its deadline is the time limit of the call. */
class PendingCall<Reply> {
  onLateReply: ((reply: Reply | null) => void) | undefined = undefined
  readonly #call: StoreCall<Reply>
  readonly #calls: CallSettings
  readonly #isAwaited: boolean
  readonly #timer: NodeJS.Timeout
  /** Its entry in the backlog, after the time limit; a small object, because it may stay there for long. */
  #overdue: { readonly sentAt: number } | undefined = undefined
  /** What `waitForReply` returned. */
  #promise: Promise<Reply | null> | undefined = undefined
  #resolve: ((reply: Reply | null) => void) | undefined = undefined

  constructor(call: StoreCall<Reply>, calls: CallSettings, isAwaited: boolean) {
    this.#call = call
    this.#calls = calls
    this.#isAwaited = isAwaited
    if (isAwaited) waitBegan()
    this.#timer = startTimer(() => this.#onTimeout(), calls.timeoutMs)
  }

  waitForReply(): Promise<Reply | null> {
    this.#promise ??= new Promise((resolve) => {
      this.#resolve = resolve
    })
    return this.#promise
  }

  #onTimeout(): void {
    this.#overdue = { sentAt: this.#call.sentAt }
    this.#calls.backlog.addOverdue(this.#overdue)
    this.#call.tell(new StoreTimeout(`The store did not reply within ${this.#calls.timeoutMs} ms (storeTimeoutMs).`))
    if (this.#isAwaited) waitEnded()
    this.#resolveReply(null)
  }

  onOutcome(reply: Reply | null, error: unknown): void {
    if (this.#overdue !== undefined) {
      this.#calls.backlog.removeOverdue(this.#overdue)
      this.onLateReply?.(reply)
      return
    }
    clearTimeout(this.#timer)
    if (this.#isAwaited) waitEnded()
    if (reply === null) this.#call.tell(error)
    this.#resolveReply(reply)
  }

  #resolveReply(reply: Reply | null): void {
    this.#call.reply = reply
    this.#resolve?.(reply)
  }
}
