import { type CommandName, type Emit, storeFailure } from '../events/events.js'
import { isThenable, type MaybePromise } from '../maybe-promise.js'
import type { RecordName } from '../record/identity.js'
import type { Hearing, SentOperation } from '../store.js'
import { type OwnContext, waitBegan, waitEnded } from './awaited.js'
import type { Backlog } from './backlog.js'
import { Deadline, type DeadlineQueue } from './deadlines.js'
import { type AnswerFault, faultInReply } from './reply.js'

/** The record of a command, as in events, and its fingerprint. */
export interface About {
  readonly identity: RecordName & { readonly fingerprint?: string }
  /** Where its request is told of something; absent while nothing has to wait. */
  readonly ownContext?: OwnContext | undefined
}

export interface Sender extends About, SentOperation {}

/** Is told of a call whose reply did not come at once. */
export interface Waiting<Reply> {
  /** `call.reply` is there. Called once, last, and in the async context of the call's request. */
  replied(call: StoreCall<Reply>): void
}

interface Calls {
  readonly backlog: Backlog
  readonly timeoutMs: number
  readonly deadlines: DeadlineQueue
  readonly answerFault: AnswerFault | undefined
}

/** A command that was not answered in time. It may still take effect. */
class StoreTimeout extends Error {
  override readonly name = 'StoreTimeout'
}

/** One copy of a command that was sent. What only waiting needs is made when it has to wait: `Pending`. */
export class StoreCall<Reply> implements Hearing<Reply> {
  readonly sentAt: number
  readonly command: CommandName
  /**
   * `undefined`: neither a reply nor its time limit has come yet. `null`: it failed or timed out, so its outcome is
   * unknown; an event was emitted.
   */
  reply: Reply | null | undefined = undefined
  /** A reply or an error has come, perhaps late. */
  isReplied = false
  readonly #about: About
  readonly #calls: Calls
  readonly #emit: Emit
  /** Absent if it was answered at once. */
  #pending: Pending<Reply> | undefined = undefined

  constructor(command: CommandName, about: About, calls: Calls, emit: Emit, sentAt: number) {
    this.command = command
    this.sentAt = sentAt
    this.#about = about
    this.#calls = calls
    this.#emit = emit
  }

  /** It was sent, and nothing has come yet: its time limit begins. */
  wait(isAwaited: boolean): void {
    this.#pending = new Pending(this, this.#about, this.#calls, isAwaited)
  }

  /** Set while it waits: is told before the waiter; for a trace. */
  set watcher(watcher: () => void) {
    if (this.#pending !== undefined) this.#pending.watcher = watcher
  }

  /** Set while it waits: is told when `reply` is there. */
  set waiter(waiter: Waiting<Reply>) {
    if (this.#pending !== undefined) this.#pending.waiter = waiter
  }

  /** Set while it is not answered: called with a reply that comes after the time limit; `null`: an error. */
  set onLateReply(hear: (reply: Reply | null) => void) {
    if (this.#pending !== undefined) this.#pending.onLateReply = hear
  }

  take(answer: MaybePromise<Reply>): void {
    if (!isThenable(answer)) {
      this.heard(answer)
      return
    }
    // A foreign promise is wrapped in our own, as `await` does: a foreign `then` may throw, or call back twice.
    Promise.resolve(answer).then(
      (reply) => this.heard(reply),
      (error) => this.failed(error),
    )
  }

  /** The reply, as a promise if it has not come yet: for those who wait rarely. */
  whenReplied(): MaybePromise<Reply | null> {
    return this.reply !== undefined ? this.reply : (this.#pending as Pending<Reply>).whenReplied()
  }

  heard(reply: Reply): void {
    if (this.isReplied) return
    const fault = this.#faultOf(reply)
    if (fault !== null) {
      this.failed(fault)
      return
    }
    this.#calls.backlog.heard(this)
    this.#answered(reply)
  }

  failed(error: unknown): void {
    if (this.isReplied) return
    this.#answered(null, error)
  }

  #faultOf(reply: Reply): unknown {
    try {
      const fault = faultInReply(this.command, reply, this.#about.identity.fingerprint, this.#calls.answerFault)
      if (fault === null) return null
      const { member, expected } = fault
      const where = member === '' ? '' : `${member}: `
      const message = `The store returned an invalid reply to \`${this.command}\`: ${where}expected ${expected}.`
      return Object.assign(new TypeError(message), { code: 'reply_invalid' })
    } catch (error) {
      return error // Reading its properties threw.
    }
  }

  #answered(reply: Reply | null, error?: unknown): void {
    this.isReplied = true
    if (this.#pending !== undefined) this.#pending.answered(reply, error)
    else {
      if (reply === null) this.tell(error)
      this.reply = reply
    }
  }

  tell(error: unknown): void {
    const { scope, key } = this.#about.identity
    this.#emit({ type: 'store_failed', scope, key, command: this.command, error: storeFailure(error) })
  }
}

/** A call that was not answered at once. Its deadline is the time limit of the call. */
class Pending<Reply> extends Deadline {
  watcher: (() => void) | undefined = undefined
  waiter: Waiting<Reply> | undefined = undefined
  onLateReply: ((reply: Reply | null) => void) | undefined = undefined
  readonly #call: StoreCall<Reply>
  readonly #about: About
  readonly #calls: Calls
  readonly #isAwaited: boolean
  /** Its entry in the backlog, after the time limit; a small object, because it may stay there for long. */
  #overdue: { readonly sentAt: number } | undefined = undefined
  /** What `whenReplied` returned. */
  #promise: Promise<Reply | null> | undefined = undefined
  #resolve: ((reply: Reply | null) => void) | undefined = undefined

  constructor(call: StoreCall<Reply>, about: About, calls: Calls, isAwaited: boolean) {
    super()
    this.#call = call
    this.#about = about
    this.#calls = calls
    this.#isAwaited = isAwaited
    if (isAwaited) waitBegan()
    calls.deadlines.set(this, call.sentAt + calls.timeoutMs)
  }

  whenReplied(): Promise<Reply | null> {
    this.#promise ??= new Promise((resolve) => {
      this.#resolve = resolve
    })
    return this.#promise
  }

  override onDue(): void {
    this.#inContext(this.#timedOut)
  }

  #timedOut(): void {
    this.#overdue = { sentAt: this.#call.sentAt }
    this.#calls.backlog.overdue(this.#overdue)
    this.#call.tell(new StoreTimeout(`The store did not reply within ${this.#calls.timeoutMs} ms (storeTimeoutMs).`))
    if (this.#isAwaited) waitEnded()
    this.#replied(null)
  }

  answered(reply: Reply | null, error: unknown): void {
    this.#inContext(this.#answered, reply, error)
  }

  #answered(reply: Reply | null, error: unknown): void {
    if (this.#overdue !== undefined) {
      this.#calls.backlog.answered(this.#overdue)
      this.onLateReply?.(reply)
      return
    }
    this.#calls.deadlines.remove(this)
    if (this.#isAwaited) waitEnded()
    if (reply === null) this.#call.tell(error)
    this.#replied(reply)
  }

  #replied(reply: Reply | null): void {
    this.#call.reply = reply
    this.watcher?.()
    this.waiter?.replied(this.#call)
    this.#resolve?.(reply)
  }

  /** Neither the timer's nor the connection's context, which may be another request's. */
  #inContext<Args extends unknown[]>(step: (this: Pending<Reply>, ...args: Args) => void, ...args: Args): void {
    const { ownContext } = this.#about
    if (ownContext === undefined) step.apply(this, args)
    else ownContext.runInAsyncScope(step, this, ...args)
  }
}
