import type { Arrival, Command, Request, StepCall } from './history.js'

/** What the history says of the record for one (scope, key), reckoned from the commands that the store granted. */
export interface Entry {
  readonly state: 'held' | 'completed' | 'failed'
  readonly token: string
  readonly request: Request
  readonly content: number
  readonly attempt: number
  readonly previousOutcome: string | null
  /** As far as the commands say: what the handlers know is reckoned with apart. */
  readonly isUncertain: boolean
  readonly leaseUntil: number
  /** From here on it is forgotten. */
  readonly until: number
  /** As `textOf` an answer; empty while there is none. */
  readonly answer: string
}

/** A claimant's part in the history. */
export interface Attempt {
  readonly request: Request
  /** The life of the record in which its last command was granted. */
  epoch: number
  /** When it was granted its claim, no earlier run of this life was still going, had died, or may have had an effect. */
  mayBeFresh: boolean
  /** The life of the record in which its answer was stored; `null`: in none. A late copy of its claim may begin another. */
  completedIn: number | null
  isPending: boolean
  /** Its owner heard that its answer was stored: it tries nothing again, though a store that loses the record may restore the claim. */
  isConfirmed: boolean
  /** Some command of it arrived twice. */
  isDuplicated: boolean
  begins: number
  /** The orders of its marks of steps that have arrived: one may be sent again, into a record that was restored. */
  readonly marks: Set<number>
  /** The life of the record in which the last mark of a step was granted, by its label. */
  readonly markedIn: Map<string, number>
  readonly releases: Command[]
  /** When its claim that was granted was sent, and the last of its commands. */
  claimSentAt: number | null
  lastSentAt: number | null
  /** Its last renewal that nothing was heard of. */
  unansweredRenewal: Command | null
  /** The last reply that showed it a completed record. */
  told: Arrival | null
}

/** One life of a record. */
interface Life {
  readonly attempts: Set<Attempt>
  effects: number
  takeovers: number
  /** The answer that is stored, and the first that a client saw. */
  stored: string | null
  seen: string | null
  /** What is recorded of its steps, by their labels. */
  readonly steps: Map<string, RecordedStep>
  /** The calls of their work. */
  readonly calls: StepCall[]
}

interface RecordedStep {
  /** Whose command it was. */
  readonly token: string
  readonly order: number
  readonly state: 'begun' | 'done' | 'undone'
  /** The state, with its result. */
  readonly text: string
}

export class Ledger {
  epoch = 0
  retentionsEnded = 0
  #entry: Entry | null = null
  readonly #lives: Life[] = [newLife()]

  at(now: number): Entry | null {
    if (this.#entry !== null && now >= this.#entry.until) {
      if (this.#entry.state === 'completed') this.retentionsEnded++
      this.forget()
    }
    return this.#entry
  }

  /** The record is gone: the next one lives a life of its own. */
  forget(): void {
    this.#entry = null
    this.epoch++
    this.#lives.push(newLife())
  }

  /** It has failed, certainly without effect. */
  isCertain(now: number): boolean {
    const entry = this.at(now)
    return entry?.state === 'failed' && !entry.isUncertain
  }

  life(epoch: number = this.epoch): Life {
    return this.#lives[epoch] as Life
  }

  write(entry: Entry): void {
    this.#entry = entry
  }

  /** The attempt is part of the present life: a command of it was granted. */
  enter(attempt: Attempt): void {
    attempt.epoch = this.epoch
    this.life().attempts.add(attempt)
  }
}

function newLife(): Life {
  return { attempts: new Set(), effects: 0, takeovers: 0, stored: null, seen: null, steps: new Map(), calls: [] }
}

/** The record after a granted command. */
export function entryAfter(arrival: Arrival, before: Entry | null, now: number, answer: string): Entry {
  const { name, terms, request } = arrival.command
  const retentionMs = terms.retentionMs ?? 0
  const own = {
    token: terms.token,
    request,
    content: before?.token === terms.token ? before.content : request.content,
    attempt: before?.token === terms.token ? before.attempt : (terms.attempt ?? 0),
    previousOutcome: before?.token === terms.token ? before.previousOutcome : null,
    leaseUntil: 0,
    answer: '',
  }
  const wasUncertain = before?.token === terms.token && before.isUncertain
  const isUncertain = wasUncertain || terms.uncertain === true
  switch (name) {
    case 'begin': {
      const { reply } = arrival
      const granted = 'acquired' in reply && reply.acquired ? reply : { attempt: 0, previousOutcome: 'none' }
      const { attempt, previousOutcome } = granted
      return {
        ...own,
        state: 'held',
        attempt,
        previousOutcome,
        isUncertain: previousOutcome === 'unknown',
        leaseUntil: now + (terms.leaseMs ?? 0),
        until: now + retentionMs,
      }
    }
    case 'renew':
    case 'step':
      return {
        ...own,
        state: 'held',
        // It says so only where it restores a claim that was lost.
        isUncertain: before === null ? isUncertain : wasUncertain,
        leaseUntil: now + (terms.leaseMs ?? 0),
        until: now + retentionMs,
      }
    case 'complete':
      return { ...own, state: 'completed', isUncertain: false, until: now + retentionMs, answer }
    case 'release':
      return {
        ...own,
        state: 'failed',
        isUncertain,
        until: now + (isUncertain ? retentionMs : (terms.failedMs ?? 0)),
      }
  }
}
