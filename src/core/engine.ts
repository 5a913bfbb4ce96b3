import { ask, askAgain, called, monotonicNow, pause } from './commands.js'
import type { Decision, RequestFacts } from './decision.js'
import { isRefusal, safely } from './events.js'
import { startExecution } from './execution.js'
import { type Identity, identityReader } from './identity.js'
import { storageKey } from './key.js'
import { type Operator, operatorOn } from './operator.js'
import { optionFunctions } from './option-functions.js'
import { type IdempotencyOptions, resolveOptions } from './options.js'
import type { Problem, ProblemCode } from './problem.js'
import type { Answer, Begun, Claim, IdempotencyRecord } from './record.js'
import { type Soon, whenever } from './soon.js'
import { newToken } from './token.js'
import { rejected, type Verdict, verdictOn } from './verdict.js'

/** The library without a framework: a binding asks it what to do with each request. */
export interface Engine<Req> extends Operator {
  /**
   * Decides what to do with a request.
   *
   * @throws IdempotencyError for misuse by the application (hand it to the framework's error handling): the handler must
   * not run; nothing was stored.
   */
  decide(facts: RequestFacts<Req>): Promise<Decision>
  /**
   * The same for an operation that is not named by a request's key, such as an event by its id. Scope and key are well-formed
   * text (`isWellFormed`); nothing else is asked of them here.
   */
  claim(identity: Identity, asker: Asker<Req>): Promise<Claimed>
  /** A problem as the response to send, in the shape that `renderProblem` gives it. */
  answerOf(problem: Problem, request: Req): Answer
  /** Resolves when no run is left, and no completion is pending: behind their last events. */
  idle(): Promise<void>
}

/** Who wants to know: what the option functions are given, and whether anybody still waits for the answer. */
export type Asker<Req> = Pick<RequestFacts<Req>, 'request' | 'isAbandoned'>

/** A claim on its way to the store. */
interface Asking<Req> {
  readonly identity: Identity
  readonly recordKey: string
  readonly claim: Claim
  readonly asker: Asker<Req>
}

/** A decision on an operation that has a name. */
export type Claimed = Exclude<Decision, { action: 'bypass' }>

const FIRST_POLL_MS = 25
const LONGEST_POLL_MS = 1_000

/**
 * The library without a framework: for a binding of one's own, or an operator's script.
 *
 * @example
 * const engine = createEngine<IncomingMessage>({ store, scope: (req) => req.headers.host })
 * const decision = await engine.decide(facts)
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function createEngine<Req = unknown>(given: IdempotencyOptions<Req>): Engine<Req> {
  const options = resolveOptions(given)
  const { store, leaseMs, maxRunMs, retentionMs, storeTimeoutMs, unknownOutcome, inFlightWaitMs } = options
  const identityOf = identityReader(options)
  const emit = safely(options.onEvent)
  const functions = optionFunctions(options, emit)
  store.observe?.(emit)

  let active = 0
  let whenIdle: (() => void)[] = []

  /** Counts what must end before the store's client may be closed. */
  function onStart(): void {
    active++
  }

  function onEnd(): void {
    active--
    if (active > 0) return
    for (const resolve of whenIdle) resolve()
    whenIdle = []
  }

  /** A request on its way may start a run, although its client has gone. */
  async function counted<D>(deciding: () => Soon<D>): Promise<D> {
    onStart()
    try {
      return await deciding()
    } finally {
      onEnd()
    }
  }

  function decisionOn(facts: RequestFacts<Req>): Soon<Decision> {
    return whenever(identityOf(facts), (identified): Soon<Decision> => {
      switch (identified.kind) {
        case 'bypass':
          return { action: 'bypass' }
        case 'rejected': {
          const { code, detail, extraHeaders } = identified
          emit({ type: 'rejected', code })
          return { ...reject(code, detail), ...(extraHeaders && { extraHeaders }) }
        }
        case 'identified': {
          const { identity, extraHeaders } = identified
          const claimed = claimFor(identity, facts)
          return extraHeaders === undefined ? claimed : claimed.then((decision) => ({ ...decision, extraHeaders }))
        }
      }
    })
  }

  /** Claims the key, or waits for its owner's answer for as long as `inFlightWaitMs` allows: with one token throughout. */
  async function claimFor(identity: Identity, asker: Asker<Req>): Promise<Claimed> {
    const { fingerprint } = identity
    const recordKey = storageKey(identity)
    const claim: Claim = { token: newToken(), fingerprint, leaseMs, retentionMs, unknownOutcome }
    const asking: Asking<Req> = { identity, recordKey, claim, asker }
    const waitUntil = inFlightWaitMs > 0 ? monotonicNow() + inFlightWaitMs : 0
    let pollMs = 0

    while (true) {
      const sentAt = monotonicNow()
      const pending = called(() => store.begin(recordKey, claim))
      const begun = await ask('begin', identity, pending, storeTimeoutMs, emit)
      // A reply that is read when the lease is over confirms nothing: the process was stopped in between.
      const isLate = begun?.acquired && monotonicNow() >= sentAt + leaseMs
      if (begun === null || isLate) {
        // A duplicate that waits has heard that its owner runs: it never runs unprotected.
        if (pollMs === 0 && options.storeFailure === 'runUnprotected') return unprotected(asking, sentAt)
        void giveUp(asking, pending)
        return reject('store_unavailable')
      }

      if (begun.acquired) {
        if (pollMs === 0 || !asker.isAbandoned()) return execute(asking, begun, sentAt)
        void giveUp(asking)
        return reject('in_flight')
      }

      const decision = verdictOn(begun.record, identity, options)
      const waitMs = waitUntil - monotonicNow()
      const waits = decision.action === 'reject' && decision.problem.code === 'in_flight' && waitMs > 0
      if (!waits || asker.isAbandoned()) return told(decision, identity, begun.record)
      pollMs = Math.min(pollMs === 0 ? FIRST_POLL_MS : pollMs * 1.5, LONGEST_POLL_MS, waitMs)
      await pause(Math.ceil(pollMs))
      if (asker.isAbandoned()) return told(decision, identity, begun.record)
    }
  }

  function execute(
    { identity, claim, asker }: Asking<Req>,
    begun: Extract<Begun, { acquired: true }>,
    sentAt: number,
  ): Extract<Decision, { action: 'execute' }> {
    const { scope, key } = identity
    const { attempt, previousOutcome } = begun
    if (attempt > 0) emit({ type: 'claimed', scope, key, attempt, previousOutcome })
    const start = { identity, token: claim.token, attempt, previousOutcome, context: begun.context, sentAt }
    onStart()
    const execution = startExecution(start, asker.request, { options, functions, emit, onEnd })
    return { action: 'execute', execution }
  }

  /** The claim may or may not have been made, and the options say to run all the same. */
  function unprotected(asking: Asking<Req>, sentAt: number): Claimed {
    const { scope, key } = asking.identity
    emit({ type: 'unprotected', scope, key })
    return execute(asking, { acquired: true, attempt: 0, previousOutcome: 'unknown' }, sentAt)
  }

  /**
   * Frees a claim that nobody will run: right behind it, and once more when its late reply or error comes, since a command
   * that waited in the client's queue must not hold the key for nobody.
   */
  async function giveUp(asking: Asking<Req>, pending?: Promise<Begun>): Promise<void> {
    let answered = false
    const markAnswered = () => {
      answered = true
    }
    const late = pending?.then(markAnswered, markAnswered)
    onStart()
    await null // Where the reply or the error came first, `answered` is true by now.
    if (!answered) void late?.then(() => free(asking))
    await free(asking)
    onEnd()
  }

  /** Tried until the claim's lease would have ended it anyway. */
  async function free({ identity, recordKey, claim }: Asking<Req>): Promise<void> {
    const { token, fingerprint } = claim
    const own = { token, fingerprint, attempt: 0, uncertain: false, retentionMs, failedMs: maxRunMs + leaseMs }
    const until = monotonicNow() + leaseMs
    const command = () => store.release(recordKey, own)
    onStart()
    const asked = called(command)
    const done = await ask('release', identity, asked, storeTimeoutMs, emit)
    if (done === null) await askAgain('release', identity, command, asked, until, storeTimeoutMs, emit)
    onEnd()
  }

  function told(decision: Verdict, { scope, key }: Identity, record: IdempotencyRecord): Verdict {
    if (decision.action === 'replay') emit({ type: 'replayed', scope, key, attempt: record.attempt ?? 0 })
    else if (isRefusal(decision.problem.code)) emit({ type: decision.problem.code, scope, key })
    return decision
  }

  function reject(code: ProblemCode, detail?: string): Verdict {
    return rejected(code, options, detail)
  }

  return {
    decide: (facts) => counted(() => decisionOn(facts)),
    claim: (identity, asker) => counted(() => claimFor(identity, asker)),
    answerOf: functions.renderProblem,
    ...operatorOn(options, functions.keepHeader, emit),
    idle() {
      return active === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.push(resolve))
    },
  }
}
