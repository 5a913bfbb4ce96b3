import { type Backlog, backlogOf } from './backlog.js'
import { monotonicNow } from './clock.js'
import { Deadline, type DeadlineQueue } from './deadlines.js'
import { type CommandName, type Emit, type OperatorCommandName, storeFailure } from './events.js'
import type { RecordName } from './identity.js'
import { isThenable, type MaybePromise } from './maybe-promise.js'
import type { BeginReply, CommandReply } from './record.js'
import { type AnswerFault, isReply } from './reply.js'
import type { Store } from './store.js'
import { isCommandTraced, traceCommand } from './trace.js'

/** The record of a command, as in events, and its fingerprint. */
export interface About {
  readonly identity: RecordName & { readonly fingerprint?: string }
}

/** The arguments and replies of commands. */
interface Commands {
  readonly begin: { readonly terms: Parameters<Store['begin']>[1]; readonly reply: BeginReply }
  readonly renew: { readonly terms: Parameters<Store['renew']>[1]; readonly reply: CommandReply }
  readonly complete: { readonly terms: Parameters<Store['complete']>[1]; readonly reply: CommandReply }
  readonly release: { readonly terms: Parameters<Store['release']>[1]; readonly reply: CommandReply }
}

type Addressed = About & { readonly recordKey: string }
type Terms<Name extends keyof Commands> = Commands[Name]['terms']
type Sent<Name extends keyof Commands> = StoreCall<Commands[Name]['reply']>

/** A command that was not answered in time. It may still take effect. */
class StoreTimeout extends Error {
  override readonly name = 'StoreTimeout'
}

const FIRST_PAUSE_MS = 100
/** Bounds the wait for pending commands after the store is back. */
const LONGEST_PAUSE_MS = 2_000
/** Sends an engine's commands to its store, each with a time limit, and retries them in the background. */
export class StoreCalls {
  readonly backlog: Backlog
  readonly timeoutMs: number
  readonly deadlines: DeadlineQueue
  readonly answerFault: AnswerFault | undefined
  readonly #store: Store
  readonly #emit: Emit

  constructor(
    store: Store,
    timeoutMs: number,
    deadlines: DeadlineQueue,
    emit: Emit,
    answerFault: AnswerFault | undefined,
  ) {
    this.answerFault = answerFault
    this.backlog = backlogOf(store)
    this.timeoutMs = timeoutMs
    this.deadlines = deadlines
    this.#store = store
    this.#emit = emit
  }

  /** Never throws: a custom store may throw synchronously, or return an invalid reply. */
  send<Name extends keyof Commands>(name: Name, about: Addressed, terms: Terms<Name>, emit = this.#emit): Sent<Name> {
    return isCommandTraced()
      ? traceCommand(name, about.identity, terms, emit, (heard) => this.#send(name, about, terms, heard))
      : this.#send(name, about, terms, emit)
  }

  #send<Name extends keyof Commands>(name: Name, about: Addressed, terms: Terms<Name>, emit: Emit): Sent<Name> {
    const call = new StoreCall<Commands[Name]['reply']>(name, about, this, emit)
    try {
      call.await(this.#store[name](about.recordKey, terms as never))
    } catch (error) {
      call.fail(error)
    }
    return call
  }

  /** The same for an operator's command. */
  ask<Reply>(
    name: OperatorCommandName,
    about: About,
    command: () => MaybePromise<Reply>,
    emit: Emit,
  ): StoreCall<Reply> {
    const call = new StoreCall<Reply>(name, about, this, emit)
    try {
      call.await(command())
    } catch (error) {
      call.fail(error)
    }
    return call
  }

  /**
   * Sends a command again, with growing pauses, after it was not answered in time; the last time at `until`. Only one
   * copy at a time: the next one follows when the previous one has failed or was lost. A late reply to any copy counts.
   * `null`: no reply came.
   */
  sendAgain<Name extends keyof Commands>(
    name: Name,
    about: Addressed,
    terms: Terms<Name>,
    first: Sent<Name>,
    until: number,
  ): Promise<Commands[Name]['reply'] | null> {
    type Reply = Commands[Name]['reply']
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
        for (let leftMs = until - monotonicNow(); leftMs > 0 && !isOver; leftMs = until - monotonicNow()) {
          await rest(Math.min(pauseMs, leftMs))
          if (isOver) return
          const isLast = monotonicNow() >= until
          const isOut = !copy.isAnswered && !this.isLost(copy)
          pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
          if (isOut) continue
          copy = this.send(name, about, terms, tell)
          copy.onLateAnswer = hear
          const reply = await copy.reply
          if (reply !== null || isLast) return over(reply)
        }
        if (!isOver) over(null)
      }

      first.onLateAnswer = hear
      void again()
    })
  }

  /** Whether a copy will stay unanswered: the store has answered a command that was sent a time limit after it. */
  isLost(copy: Pick<StoreCall<unknown>, 'sentAt'>): boolean {
    return this.backlog.isLost(copy, this.timeoutMs)
  }
}

/** One copy of a command that was sent. Its deadline is its time limit. */
export class StoreCall<Reply> extends Deadline {
  readonly sentAt = monotonicNow()
  /** `null`: it failed or timed out, so its outcome is unknown; an event was emitted. */
  reply: MaybePromise<Reply | null> = null
  /** A reply or an error has come, perhaps late. */
  isAnswered = false
  /** Called with a reply that comes after the time limit; `null`: an error. */
  onLateAnswer: ((reply: Reply | null) => void) | undefined

  readonly #name: CommandName
  readonly #about: About
  readonly #calls: StoreCalls
  readonly #emit: Emit
  /** Resolves `reply` while that is a pending promise. */
  #resolve: ((reply: Reply | null) => void) | undefined
  /** Its entry in the backlog, after the time limit; a small object, because it may stay there for long. */
  #overdue: { readonly sentAt: number } | undefined

  constructor(name: CommandName, about: About, calls: StoreCalls, emit: Emit) {
    super()
    this.#name = name
    this.#about = about
    this.#calls = calls
    this.#emit = emit
  }

  /** Takes what the store returned: a reply, or a promise of one. */
  await(answer: MaybePromise<Reply>): void {
    if (isThenable(answer)) this.#wait(answer)
    else this.#hear(answer)
  }

  #wait(answer: Promise<Reply>): void {
    this.reply = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#calls.deadlines.set(this, this.sentAt + this.#calls.timeoutMs)
    // Wrapped in our own promise, as `await` does: a foreign `then` may throw, or call back twice.
    Promise.resolve(answer).then(
      (reply) => this.#hear(reply),
      (error) => this.fail(error),
    )
  }

  fail(error: unknown): void {
    if (this.#overdue === undefined) this.#tell(error)
    this.#end(null)
  }

  override onDue(): void {
    this.#overdue = { sentAt: this.sentAt }
    this.#calls.backlog.overdue(this.#overdue)
    this.#tell(new StoreTimeout(`The store did not reply within ${this.#calls.timeoutMs} ms (storeTimeoutMs).`))
    this.#resolve?.(null)
  }

  #hear(reply: Reply): void {
    const fault = this.#faultOf(reply)
    if (fault !== null) {
      this.fail(fault)
      return
    }
    this.#calls.backlog.heard(this)
    this.#end(reply)
  }

  /** Why the reply is invalid, if it is. */
  #faultOf(reply: Reply): unknown {
    try {
      return isReply(this.#name, reply, this.#about.identity.fingerprint, this.#calls.answerFault)
        ? null
        : new TypeError(`The store returned an invalid reply to \`${this.#name}\`.`)
    } catch (error) {
      return error // Reading its properties threw.
    }
  }

  #end(reply: Reply | null): void {
    this.isAnswered = true
    if (this.#overdue !== undefined) {
      this.#calls.backlog.answered(this.#overdue)
      this.onLateAnswer?.(reply)
    } else if (this.#resolve === undefined) {
      this.reply = reply
    } else {
      this.#calls.deadlines.remove(this)
      this.#resolve(reply)
    }
  }

  #tell(error: unknown): void {
    const { scope, key } = this.#about.identity
    this.#emit({ type: 'store_failed', scope, key, command: this.#name, error: storeFailure(error) })
  }
}
