import { Buffer } from 'node:buffer'
import { keepProcessAlive } from '../calls/timers.js'
import type { Answer, IdempotencyRecord } from '../record/record.js'

interface KeyHolder {
  readonly fingerprint: string
  readonly attempt: number
}

/** How many duplicates may wait in an engine: each holds a request and a connection. */
const MOST_WAITING = 1_000
const FIRST_POLL_MS = 25
const LONGEST_POLL_MS = 1_000
/** How often a duplicate that does not poll checks whether its time is over, or its client has gone. */
const LOOK_MS = 1_000

/**
 * The duplicates that wait for the answer of a key (`inFlightWaitMs`), and the runs of this engine that they may wait
 * for.
 *
 * Those of one key form a line. While a run of this engine holds the key, none of them polls the store: the end of the
 * run notifies them. Otherwise the first in line polls for all. A run without duplicates costs one map entry.
 */
export class Duplicates {
  readonly #runs = new Map<string, KeyHolder>()
  readonly #lines = new Map<string, WaiterQueue>()
  readonly #waitingOf = new Map<string, number>()
  #waiting = 0

  enter(recordKey: string, own: KeyHolder): void {
    this.#runs.set(recordKey, own)
  }

  /** The run no longer holds the key; the first in line will ask the store whether another attempt may run. */
  leave(recordKey: string, own: KeyHolder): void {
    if (!this.#end(recordKey, own)) return
    const line = this.#lines.get(recordKey)
    if (line === undefined) return
    line.pauseMs = 0
    line.wakeFirst()
  }

  /** Its answer is stored: everybody in line gets it. */
  onCompleted(recordKey: string, own: KeyHolder, answer: Answer): void {
    if (!this.#end(recordKey, own)) return
    const { fingerprint, attempt } = own
    this.#lines.get(recordKey)?.tell({ state: 'completed', fingerprint, attempt, answer })
  }

  /** Only if it is still this run, and not a later one. */
  #end(recordKey: string, own: KeyHolder): boolean {
    return this.#runs.get(recordKey) === own && this.#runs.delete(recordKey)
  }

  /** Whether a run of this engine holds the key for the same operation. */
  hasRun(recordKey: string, fingerprint: string): boolean {
    return this.#runs.get(recordKey)?.fingerprint === fingerprint
  }

  /**
   * A place in the line of this key; `null` if there is no room. A scope that holds more places than are free gets
   * none, so that no scope can take all of them.
   */
  join(recordKey: string, fingerprint: string, scope: string): DuplicateWaiter | null {
    const ofScope = this.#waitingOf.get(scope) ?? 0
    if (ofScope >= MOST_WAITING - this.#waiting) return null
    this.#waiting++
    this.#waitingOf.set(scope, ofScope + 1)
    let line = this.#lines.get(recordKey)
    if (line === undefined) {
      line = new WaiterQueue()
      this.#lines.set(recordKey, line)
    }
    const place = new DuplicateWaiter(line, () => !this.hasRun(recordKey, fingerprint))
    line.places.add(place)
    return place
  }

  /** Gives the place up; the next one moves up. */
  part(recordKey: string, scope: string, place: DuplicateWaiter): void {
    this.#waiting--
    const ofScope = (this.#waitingOf.get(scope) ?? 0) - 1
    if (ofScope > 0) this.#waitingOf.set(scope, ofScope)
    else this.#waitingOf.delete(scope)
    place.line.places.delete(place)
    if (place.line.places.size === 0) this.#lines.delete(recordKey)
    else place.line.wakeFirst()
  }
}

/** The duplicates that wait for one key, in order of arrival. */
class WaiterQueue {
  readonly places = new Set<DuplicateWaiter>()
  /** How long the first in line waits before it polls. */
  pauseMs = FIRST_POLL_MS

  get first(): DuplicateWaiter | undefined {
    return this.places.values().next().value
  }

  wakeFirst(): void {
    this.first?.wake?.()
  }

  /** Passes the final state of the record on to everybody in line. */
  tell(record: IdempotencyRecord): void {
    for (const place of this.places) {
      place.record = copyAnswerBytes(record)
      place.wake?.()
    }
  }
}

/** A copy of the answer's bytes for each duplicate: what changes or hands on its own must not change another's. */
function copyAnswerBytes(record: IdempotencyRecord): IdempotencyRecord {
  if (record.state !== 'completed' || record.answer === null || record.answer.body === null) return record
  const { state, fingerprint, attempt } = record
  const { status, statusMessage, headers, body } = record.answer
  return { state, fingerprint, attempt, answer: { status, statusMessage, headers, body: Buffer.from(body) } }
}

export class DuplicateWaiter {
  readonly line: WaiterQueue
  /** The final state of the record, if another duplicate has seen it. */
  record: IdempotencyRecord | undefined
  wake: (() => void) | undefined
  readonly #isFree: () => boolean

  constructor(line: WaiterQueue, isFree: () => boolean) {
    this.line = line
    this.#isFree = isFree
  }

  /** Whether this place polls the store, for all that follow it. */
  get asks(): boolean {
    return this.line.first === this && this.#isFree()
  }

  /**
   * Waits until this place should poll, has received the final record, or should check for timeout and disconnection.
   */
  async turn(mostMs: number): Promise<void> {
    const { asks, line } = this
    const ms = Math.min(asks ? line.pauseMs : LOOK_MS, mostMs)
    if (asks) line.pauseMs = Math.min(Math.max(line.pauseMs * 1.5, FIRST_POLL_MS), LONGEST_POLL_MS)
    if (ms <= 0) return
    const turn = new Promise<void>((resolve) => {
      const timer = setTimeout(endTurn, Math.ceil(ms)).unref()
      const place = this
      function endTurn(): void {
        clearTimeout(timer)
        place.wake = undefined
        resolve()
      }
      this.wake = endTurn
    })
    await keepProcessAlive(turn)
  }
}
