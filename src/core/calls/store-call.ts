import { type CommandName, type Emit, storeFailure } from '../events/events.js'
import type { OwnContext } from '../events/own-context.js'
import type { MaybePromise } from '../maybe-promise.js'
import type { RecordName } from '../record/identity.js'
import type { Hearing, SentOperation } from '../store.js'
import { waitBegan, waitEnded } from './awaited.js'
import type { Backlog } from './backlog.js'
import { Deadline, type DeadlineQueue } from './deadlines.js'
import { type AnswerFault, isReply } from './reply.js'

/** The record of a command, as in events, and its fingerprint. */
export interface About {
  readonly identity: RecordName & { readonly fingerprint?: string }
  /** Where its request is told of something; absent while nothing has to wait. */
  readonly ownContext?: OwnContext | undefined
}

/** Whoever sends an owner's command. */
export interface Sender extends About, SentOperation {}

/** Is told of a call whose reply did not come at once. */
export interface Waiting<Reply> {
  /** `call.reply` is there. Called once, last, and in the async context of the call's request. */
  replied(call: StoreCall<Reply>): void
}

/** The parts of an engine that a call uses. */
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

/** One copy of a command that was sent. Its deadline is its time limit. */
export class StoreCall<Reply> extends Deadline implements Hearing<Reply> {
  readonly sentAt: number
  readonly command: CommandName
  /**
   * `undefined`: neither a reply nor its time limit has come yet. `null`: it failed or timed out, so its outcome is
   * unknown; an event was emitted.
   */
  reply: Reply | null | undefined = undefined
  /** A reply or an error has come, perhaps late. */
  isAnswered = false
  /** Is told before the waiter; set by a trace. */
  watcher: (() => void) | undefined = undefined
  /** Is told when `reply` is there. */
  waiter: Waiting<Reply> | undefined = undefined
  /** Called with a reply that comes after the time limit; `null`: an error. */
  onLateAnswer: ((reply: Reply | null) => void) | undefined = undefined

  readonly #about: About
  readonly #calls: Calls
  readonly #emit: Emit
  /** It was not answered at once. */
  #isPending = false
  /** A caller waits for the reply. */
  #isAwaited = false
  /** Its entry in the backlog, after the time limit; a small object, because it may stay there for long. */
  #overdue: { readonly sentAt: number } | undefined = undefined
  /** Resolves what `whenReplied` returned. */
  #resolve: ((reply: Reply | null) => void) | undefined = undefined
  #promise: Promise<Reply | null> | undefined = undefined

  constructor(command: CommandName, about: About, calls: Calls, emit: Emit, sentAt: number) {
    super()
    this.command = command
    this.sentAt = sentAt
    this.#about = about
    this.#calls = calls
    this.#emit = emit
  }

  /** It was sent, and nothing has come yet: its time limit begins. */
  wait(isAwaited: boolean): void {
    this.#isPending = true
    this.#isAwaited = isAwaited
    if (isAwaited) waitBegan()
    this.#calls.deadlines.set(this, this.sentAt + this.#calls.timeoutMs)
  }

  /** Takes the store's promise of a reply. */
  hearLater(answer: Promise<Reply>): void {
    // A foreign one is wrapped in our own, as `await` does: a foreign `then` may throw, or call back twice.
    Promise.resolve(answer).then(
      (reply) => this.heard(reply),
      (error) => this.failed(error),
    )
  }

  /** The reply, as a promise if it has not come yet: for those who wait rarely. */
  whenReplied(): MaybePromise<Reply | null> {
    if (this.reply !== undefined) return this.reply
    this.#promise ??= new Promise((resolve) => {
      this.#resolve = resolve
    })
    return this.#promise
  }

  heard(reply: Reply): void {
    if (this.isAnswered) return
    const fault = this.#faultOf(reply)
    if (fault !== null) {
      this.failed(fault)
      return
    }
    this.#calls.backlog.heard(this)
    this.#answered(reply)
  }

  failed(error: unknown): void {
    if (this.isAnswered) return
    this.#answered(null, error)
  }

  /** Why the reply is invalid, if it is. */
  #faultOf(reply: Reply): unknown {
    try {
      return isReply(this.command, reply, this.#about.identity.fingerprint, this.#calls.answerFault)
        ? null
        : new TypeError(`The store returned an invalid reply to \`${this.command}\`.`)
    } catch (error) {
      return error // Reading its properties threw.
    }
  }

  override onDue(): void {
    this.#inContext(this.#timedOut)
  }

  #timedOut(): void {
    this.#overdue = { sentAt: this.sentAt }
    this.#calls.backlog.overdue(this.#overdue)
    this.#tell(new StoreTimeout(`The store did not reply within ${this.#calls.timeoutMs} ms (storeTimeoutMs).`))
    if (this.#isAwaited) waitEnded()
    this.#replied(null)
  }

  #answered(reply: Reply | null, error?: unknown): void {
    this.isAnswered = true
    if (this.#isPending) this.#inContext(this.#answeredLater, reply, error)
    else {
      if (reply === null) this.#tell(error)
      this.reply = reply
    }
  }

  #answeredLater(reply: Reply | null, error: unknown): void {
    if (this.#overdue !== undefined) {
      this.#calls.backlog.answered(this.#overdue)
      this.onLateAnswer?.(reply)
      return
    }
    this.#calls.deadlines.remove(this)
    if (this.#isAwaited) waitEnded()
    if (reply === null) this.#tell(error)
    this.#replied(reply)
  }

  #replied(reply: Reply | null): void {
    this.reply = reply
    this.watcher?.()
    this.waiter?.replied(this)
    this.#resolve?.(reply)
  }

  /** Neither the timer's nor the connection's context, which may be another request's. */
  #inContext<Args extends unknown[]>(step: (this: StoreCall<Reply>, ...args: Args) => void, ...args: Args): void {
    const { ownContext } = this.#about
    if (ownContext === undefined) step.apply(this, args)
    else ownContext.runInAsyncScope(step, this, ...args)
  }

  #tell(error: unknown): void {
    const { scope, key } = this.#about.identity
    this.#emit({ type: 'store_failed', scope, key, command: this.command, error: storeFailure(error) })
  }
}
