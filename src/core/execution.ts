import { isEventStream, withKeptHeaders } from './answer.js'
import { ask, askAgain, called, monotonicNow } from './commands.js'
import type { Execution, Settled } from './decision.js'
import { derivedKey } from './derived-key.js'
import { IdempotencyError } from './errors.js'
import type { Emit } from './events.js'
import type { Identity } from './identity.js'
import { storageKey } from './key.js'
import type { OptionFunctions } from './option-functions.js'
import type { ResolvedOptions } from './options.js'
import type { Answer, Done, IdempotencyRecord, Own, PreviousOutcome } from './record.js'
import { rejected, verdictAfterLoss } from './verdict.js'
import { WithSignal } from './with-signal.js'

/** What a run starts from. */
export interface Start {
  readonly identity: Identity
  readonly token: string
  /** 0: the claim was not confirmed. */
  readonly attempt: number
  readonly previousOutcome: PreviousOutcome
  readonly context?: unknown
  /** When the claim was sent: the lease counts from here. */
  readonly sentAt: number
}

/** What a run needs of its engine. */
export interface Surroundings<Req> {
  readonly options: ResolvedOptions<Req>
  readonly functions: OptionFunctions<Req>
  readonly emit: Emit
  /** Called once, when nothing of the run is left, be it in the background. */
  readonly onEnd: () => void
}

/** One run of the handler: keeps its lease, ends its record. */
export function startExecution<Req>(
  start: Start,
  request: Req,
  { options, functions, emit, onEnd }: Surroundings<Req>,
): Execution {
  const { store, leaseMs, maxRunMs, retentionMs, storeTimeoutMs } = options
  const { identity, token, attempt, previousOutcome, sentAt } = start
  const { scope, key, fingerprint } = identity
  // A text of its own: a record that kept the claim's would keep the pieces of which that was made.
  const recordKey = storageKey(identity)
  const own: Own = { token, fingerprint, attempt, uncertain: attempt > 0 && previousOutcome === 'unknown', retentionMs }

  let mayHaveHadEffect = false
  let settled: Promise<Settled> | undefined
  let over = false

  // --- the lease

  // An unprotected run has no lease to lose by time.
  let confirmedAt = attempt > 0 ? sentAt : Number.POSITIVE_INFINITY
  let renewAt = sentAt + leaseMs / 3
  let lost = false
  let taken = false
  let renewing: Promise<void> | undefined
  let abort: AbortController | undefined
  let timer = setTimeout(tick, Math.ceil(leaseMs / 3)).unref()

  function tick(): void {
    const now = monotonicNow()
    loseIfLapsed(now)
    const inTime = now < sentAt + maxRunMs
    if (inTime && !taken && now >= renewAt) {
      renewAt = now + leaseMs / 3
      renewing = renew(now)
    }
    const next = Math.min(
      inTime && !taken ? renewAt : Number.POSITIVE_INFINITY,
      lost ? Number.POSITIVE_INFINITY : confirmedAt + leaseMs,
      inTime ? sentAt + maxRunMs : Number.POSITIVE_INFINITY,
    )
    if (next < Number.POSITIVE_INFINITY) timer = setTimeout(tick, Math.max(1, Math.ceil(next - now))).unref()
    // Its time is over, and its lease is gone: whatever the handler still does, nobody waits for it.
    else if (settled === undefined) end()
  }

  async function renew(now: number): Promise<void> {
    const done = await ask(
      'renew',
      identity,
      called(() => store.renew(recordKey, { ...own, leaseMs })),
      storeTimeoutMs,
      emit,
    )
    if (done === null) return
    if (done.ok) confirmedAt = Math.max(confirmedAt, now)
    // Once the end was sent, a stale renewal may mean that it arrived: its own reply will tell.
    else if (settled === undefined && isTaken(done.record)) lose('taken')
  }

  /** Whether the record that our command met is another's who runs, or has run. To an unprotected run a failure is nobody's. */
  function isTaken(record: IdempotencyRecord | null): boolean {
    return attempt > 0 || record?.state !== 'failed'
  }

  function loseIfLapsed(now = monotonicNow()): void {
    if (!lost && now >= confirmedAt + leaseMs) lose('lapsed')
  }

  function lose(reason: 'lapsed' | 'taken'): void {
    if (reason === 'taken') taken = true
    if (lost) return
    lost = true
    emit({ type: 'lease_lost', scope, key, attempt, reason })
    abort?.abort(leaseLost())
  }

  /** Called behind the last event of the run; that of a renewal on its way is still waited for. */
  function end(): void {
    if (over) return
    over = true
    clearTimeout(timer)
    if (renewing === undefined) onEnd()
    else void renewing.then(onEnd)
  }

  // --- the end

  async function complete(answer: Answer): Promise<Settled> {
    const stored = withKeptHeaders(answer, functions.keepHeader)
    const command = () => store.complete(recordKey, { ...own, answer: stored })
    const pending = () => emit({ type: 'completion_pending', scope, key, attempt })
    const givenUp = () => emit({ type: 'completion_given_up', scope, key, attempt })
    const sentUnheld = () => {
      pending()
      givenUp()
    }
    const completed = () =>
      emit({ type: 'completed', scope, key, attempt, status: answer.status, answerKept: answer.body !== null })

    const asked = called(command)
    const done = await ask('complete', identity, asked, storeTimeoutMs, emit)
    if (done !== null) return close(done, completed, sentUnheld)
    if (store.effects === 'inside') {
      end()
      return unconfirmed()
    }
    pending()
    void repeat('complete', command, asked, (late) => close(late, completed, givenUp), givenUp)
    // Whoever took over may have sent another success: without a lease, only a confirmed one is sent.
    return lost || monotonicNow() >= confirmedAt + leaseMs ? unconfirmed() : { action: 'send' }
  }

  function unconfirmed(): Settled {
    return rejected('store_unavailable', options, MAY_HAVE_RUN)
  }

  async function release(): Promise<Settled> {
    const uncertain = own.uncertain || mayHaveHadEffect
    const command = () => store.release(recordKey, { ...own, uncertain, failedMs: maxRunMs + leaseMs })
    const failed = () => emit({ type: 'failed', scope, key, attempt, uncertain })

    const asked = called(command)
    const done = await ask('release', identity, asked, storeTimeoutMs, emit)
    if (done !== null) return close(done, failed)
    void repeat('release', command, asked, (late) => close(late, failed))
    return { action: 'send' }
  }

  /** The store has spoken: the end stands, or the record is another's. */
  function close(done: Done, succeeded: () => void, unheld = () => {}): Settled {
    if (done.ok) {
      succeeded()
      end()
      return { action: 'send' }
    }
    if (isTaken(done.record)) {
      lose('taken')
      end()
      return verdictAfterLoss(done.record, identity, options)
    }
    unheld()
    end()
    return { action: 'send' }
  }

  /** In the background, with the lease still renewed, until the store answers or the run's time is over. */
  async function repeat(
    name: 'complete' | 'release',
    command: () => Promise<Done>,
    asked: Promise<Done>,
    answered: (done: Done) => void,
    givenUp = () => {},
  ): Promise<void> {
    const done = await askAgain(name, identity, command, asked, sentAt + maxRunMs, storeTimeoutMs, emit)
    if (done !== null) return answered(done)
    givenUp()
    end()
  }

  function signal(): AbortSignal {
    if (!over) loseIfLapsed() // A process that was stopped may hear its sockets before its timers.
    abort ??= new AbortController()
    if (lost && !abort.signal.aborted) abort.abort(leaseLost())
    return abort.signal
  }

  return Object.assign(new WithSignal(signal), {
    key,
    scope,
    attempt,
    previousOutcome,
    context: start.context,
    maxAnswerBytes: options.maxAnswerBytes,
    keepsBody(byteLength: number, contentType: unknown) {
      return byteLength <= options.maxAnswerBytes && !isEventStream(contentType)
    },
    mayHaveEffect() {
      mayHaveHadEffect = true
    },
    deriveKey(label: string) {
      return derivedKey(identity, label)
    },
    settle(answer: Answer) {
      settled ??= functions.isSuccess(answer, request) ? complete(answer) : release()
      return settled
    },
    async fail() {
      settled ??= release()
      await settled
    },
  })
}

const MAY_HAVE_RUN =
  'The operation may have been carried out, but that could not be stored. Send the same request again with the same key after ' +
  'a short delay, and never with a new one.'

function leaseLost(): IdempotencyError {
  return new IdempotencyError(
    'lease_lost',
    'The lease of this idempotency key was lost: another attempt may run now. Stop.',
  )
}
