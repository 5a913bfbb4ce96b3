import type { Store } from '../store/store.js'

interface TimestampedCommand {
  readonly sentAt: number
}

/**
 * How many commands may be unanswered past their time limit before claims are refused without being sent. While the
 * server is unreachable, the client keeps about 1 KiB for each.
 */
const MOST_UNANSWERED = 1_000
/** How many releases of given-up claims may be unanswered at a time. Beyond that the lease ends the claim. */
const MOST_RELEASES = 250
const PROBE_MS = 1_000
/** After the first minute probes become rarer: an outage of a day leaves some 500 of them unanswered, not 86,400. */
const PAUSE_PER_PROBE = 60
/** A command that is unanswered for this long, while the store answers later ones, will never be answered. */
const LOST_MS = 60_000

/**
 * The commands that a store has not answered yet, for all engines of the process that use it, since they share its
 * client and the client's queue. Bounds that queue in an outage of any length.
 */
export class Backlog {
  /** Commands unanswered past their time limit, roughly in the order in which they were sent. */
  readonly #overdue = new Set<TimestampedCommand>()
  /** When the latest command was sent that got a reply. Errors do not count: they may be the client's own. */
  #heardUntil = Number.NEGATIVE_INFINITY
  #pausedSince: number | undefined
  #claimedAt = Number.NEGATIVE_INFINITY
  #releases = 0

  get unanswered(): number {
    return this.#overdue.size
  }

  addOverdue(command: TimestampedCommand): void {
    this.#overdue.add(command)
  }

  /** An overdue command got a reply or an error. */
  removeOverdue(command: TimestampedCommand): void {
    this.#overdue.delete(command)
  }

  /** A command got a reply, so the store is reachable. */
  onReply({ sentAt }: TimestampedCommand): void {
    this.#heardUntil = Math.max(this.#heardUntil, sentAt)
  }

  /**
   * Whether the store has answered a command that was sent `laterMs` after this one: then this one, or its reply, was
   * lost.
   */
  isLost({ sentAt }: TimestampedCommand, laterMs: number): boolean {
    return this.#heardUntil > sentAt + laterMs
  }

  /** Whether a claim may be sent now: while very many commands are unanswered, only one probe per second. */
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

  /**
   * Whether a given-up claim may be released; if so, `endRelease` must follow. Always, if the claim is known to hold
   * its key.
   */
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

export function getBacklog(store: Store): Backlog {
  let backlog = backlogs.get(store)
  if (backlog === undefined) {
    backlog = new Backlog()
    backlogs.set(store, backlog)
  }
  return backlog
}
