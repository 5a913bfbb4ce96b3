import type { Store } from './store.js'

/** A command that was sent. */
interface Sent {
  readonly sentAt: number
}

/**
 * So many commands may be unanswered past their time limit before claims are refused without being sent. A client that
 * waits for its server keeps each of them, about 1 KiB.
 */
const MOST_UNANSWERED = 1_000
/** So many claims that were given up may be released at a time. The leases of the others end them. */
const MOST_RELEASES = 250
const PROBE_MS = 1_000
/** From the first minute on probes become rarer: an outage of a day leaves some 500 of them unanswered, not 86,400. */
const PAUSE_PER_PROBE = 60
/** What is unanswered for so long while the store answers what was asked later will never be answered. */
const LOST_MS = 60_000

/**
 * What a store has not answered yet: all engines of a process that use it share its client, and with it, its queue. Here
 * stands what bounds that queue in an outage, however long it lasts.
 */
export class Backlog {
  /** Unanswered past their time limit, about in the order in which they were sent. */
  readonly #overdue = new Set<Sent>()
  /** When the latest of the commands was sent that were answered with a reply. An error may be the client's own. */
  #heardUntil = Number.NEGATIVE_INFINITY
  #pausedSince: number | undefined
  #claimedAt = Number.NEGATIVE_INFINITY
  #releases = 0

  get unanswered(): number {
    return this.#overdue.size
  }

  /** Its time limit has passed. */
  overdue(command: Sent): void {
    this.#overdue.add(command)
  }

  /** What was overdue has been answered, if only with an error. */
  answered(command: Sent): void {
    this.#overdue.delete(command)
  }

  /** A command was answered with a reply: the store is there. */
  heard({ sentAt }: Sent): void {
    this.#heardUntil = Math.max(this.#heardUntil, sentAt)
  }

  /** Whether the store has answered what was asked so much later: then this was lost, or its reply was. */
  isLost({ sentAt }: Sent, laterMs: number): boolean {
    return this.#heardUntil > sentAt + laterMs
  }

  /** Whether a claim may be sent now: not while very many commands are unanswered, but for a probe a second. */
  mayClaim(now: number): boolean {
    if (this.#overdue.size >= MOST_UNANSWERED) this.#forgetLost()
    if (this.#overdue.size < MOST_UNANSWERED) {
      this.#pausedSince = undefined
    } else {
      this.#pausedSince ??= now
      const probeMs = Math.max(PROBE_MS, (now - this.#pausedSince) / PAUSE_PER_PROBE)
      if (now < this.#claimedAt + probeMs) return false
    }
    this.#claimedAt = now
    return true
  }

  #forgetLost(): void {
    for (const command of this.#overdue) {
      if (!this.isLost(command, LOST_MS)) return
      this.#overdue.delete(command)
    }
  }

  /** Whether a claim that was given up may be released: `endRelease` must follow. One that is known to hold its key always. */
  startRelease(isHeld: boolean): boolean {
    const isFull = this.#releases >= MOST_RELEASES || this.#overdue.size >= MOST_UNANSWERED
    if (isFull && !isHeld) return false
    this.#releases++
    return true
  }

  endRelease(): void {
    this.#releases--
  }
}

const backlogs = new WeakMap<Store, Backlog>()

export function backlogOf(store: Store): Backlog {
  let backlog = backlogs.get(store)
  if (backlog === undefined) {
    backlog = new Backlog()
    backlogs.set(store, backlog)
  }
  return backlog
}
