import type { Answer } from 'once-per-key/core'
import type { IdempotencyOptions } from 'once-per-key/http'
import type { Random } from './random.js'

/** What one world is like: the options of its engines, who lives in it, and what may go wrong, and how often. */
export interface Setting {
  readonly options: Resolved<
    Pick<
      IdempotencyOptions,
      | 'leaseMs'
      | 'storeTimeoutMs'
      | 'maxRunMs'
      | 'retentionMs'
      | 'unknownRetentionMs'
      | 'inFlightWaitMs'
      | 'unknownOutcome'
      | 'effects'
      | 'unconfirmedSuccess'
      | 'storeFailure'
    >
  >
  readonly isSuccess?: (answer: Answer) => boolean
  /** What `isSuccess`, or its default where it fails, comes to. */
  readonly succeeds: (status: number) => boolean
  readonly isCertainFailure?: (answer: Answer) => boolean
  /** What `isCertainFailure`, where it is asked, comes to. */
  readonly isCalledCertain: (status: number) => boolean
  readonly records: 'map' | 'memory'
  /** Whether handlers take steps. */
  readonly hasSteps: boolean
  readonly instances: number
  readonly clients: number
  /** How long a client dwells on the newest keys before there are newer ones. */
  readonly keyMs: number
  /** From here on nothing fails any more. */
  readonly faultsEndAt: number
  readonly faults: Faults
}

/** Probabilities for each command, and of each trouble among the troubles. */
export interface Faults {
  /** At most this much for each way, and without a fault always well within the time limit. */
  readonly latencyMs: number
  readonly thrown: number
  readonly requestLost: number
  readonly replyLost: number
  readonly failedBefore: number
  readonly failedAfter: number
  readonly requestLate: number
  readonly replyLate: number
  readonly emptyReply: number
  readonly duplicate: number
  /** That the instance stalls as soon as it has sent it. */
  readonly stallBehind: number
  /** That the instance stalls while a handler runs, for each run. */
  readonly stallInRun: number
  /** On average; 0: none. */
  readonly troubleEveryMs: number
  readonly stall: number
  readonly crash: number
  readonly cut: number
  readonly recordLost: number
  readonly recordDamaged: number
}

/**
 * Leases of at least 5 s: a pending end waits up to 5 s for its next try, beside a lease and 2 s in which each key has to
 * resolve once nothing fails any more.
 */
export function settingOf(random: Random): Setting {
  const { between, chance, pick } = random
  const leaseMs = between(5, 10) * 1_000
  const storeTimeoutMs = pick([100, 400, 1_000, leaseMs / 4])
  const maxRunMs = pick([leaseMs, leaseMs + 500, 2 * leaseMs, 4 * leaseMs])
  const retentionMs = maxRunMs + leaseMs + pick([0, 0, 3_000, 30_000, 86_400_000])
  const isUnprotected = chance(0.1)
  const records = chance(0.25) ? 'memory' : 'map'
  return {
    options: {
      leaseMs,
      storeTimeoutMs,
      maxRunMs,
      retentionMs,
      unknownRetentionMs: pick([retentionMs, retentionMs, maxRunMs + leaseMs, 2 * retentionMs]),
      inFlightWaitMs: chance(0.5) ? 0 : between(20, 3_000),
      unknownOutcome: pick(['rerun', 'rerun', 'refuse']),
      effects: pick(['assumed', 'assumed', 'declared']),
      unconfirmedSuccess: pick(['send', 'send', 'withhold']),
      storeFailure: isUnprotected ? 'runUnprotected' : 'refuse',
    },
    ...pick(SUCCESSES),
    ...pick(CERTAIN_FAILURES),
    records,
    hasSteps: chance(0.4),
    instances: between(1, 4),
    clients: between(2, 6),
    keyMs: between(500, 5_000),
    faultsEndAt: between(20_000, 60_000),
    faults: faultsOf(random, storeTimeoutMs),
  }
}

/** The default, 4xx kept as well, and a function that fails, so that the default stands in. */
const SUCCESSES: readonly Pick<Setting, 'isSuccess' | 'succeeds'>[] = [
  { succeeds: isSuccessByDefault },
  { isSuccess: ({ status }) => status < 500, succeeds: (status) => status < 500 },
  {
    isSuccess: () => {
      throw new Error('isSuccess fails')
    },
    succeeds: isSuccessByDefault,
  },
]

/** Absent, a bank whose 503 means that it did nothing, and a function that fails, so that nothing is certain. */
const CERTAIN_FAILURES: readonly Pick<Setting, 'isCertainFailure' | 'isCalledCertain'>[] = [
  { isCalledCertain: () => false },
  { isCertainFailure: ({ status }) => status === 503, isCalledCertain: (status) => status === 503 },
  {
    isCertainFailure: () => {
      throw new Error('isCertainFailure fails')
    },
    isCalledCertain: () => false,
  },
]

function isSuccessByDefault(status: number): boolean {
  return status >= 200 && status <= 399 && status !== 307 && status !== 308
}

function faultsOf({ between, chance, pick }: Random, storeTimeoutMs: number): Faults {
  /** Each fault is absent from half of the worlds, so that none hides behind another. */
  const sometimes = (most: number) => (chance(0.5) ? 0 : (most * between(1, 10)) / 10)
  return {
    latencyMs: Math.min(pick([0, 5, 50, 400]), Math.floor(storeTimeoutMs / 4)),
    thrown: sometimes(0.03),
    requestLost: sometimes(0.1),
    replyLost: sometimes(0.1),
    failedBefore: sometimes(0.08),
    failedAfter: sometimes(0.08),
    requestLate: sometimes(0.08),
    replyLate: sometimes(0.08),
    emptyReply: sometimes(0.03),
    duplicate: sometimes(0.15),
    stallBehind: sometimes(0.01),
    stallInRun: sometimes(0.15),
    troubleEveryMs: chance(0.2) ? 0 : between(1, 10) * 1_000,
    stall: sometimes(1),
    crash: sometimes(1),
    cut: sometimes(1),
    recordLost: sometimes(0.3),
    recordDamaged: sometimes(0.3),
  }
}

/** Each of them given. */
type Resolved<Options> = { readonly [Name in keyof Options]-?: Exclude<Options[Name], undefined> }
