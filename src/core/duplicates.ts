import type { Answer, IdempotencyRecord, Ownership } from './record.js'

/** So many duplicates may wait in an engine: each holds a request and a connection. */
const MOST_WAITING = 1_000
const FIRST_POLL_MS = 25
const LONGEST_POLL_MS = 1_000
/** How often one that only waits looks whether its time is over, or its client has gone. */
const LOOK_MS = 1_000

/**
 * The duplicates that wait for the answer of a key (`inFlightWaitMs`), and the runs of this engine that they may wait for.
 *
 * Those of one key stand in a line. While a run of this engine holds the key, nobody in it asks the store: the end of the
 * run tells them. Else the first in the line asks for all of them. A run that nobody waits for costs an entry in a map.
 */
export class Duplicates {
  readonly #runs = new Map<string, Ownership>()
  readonly #lines = new Map<string, Line>()
  readonly #waitingOf = new Map<string, number>()
  #waiting = 0

  /** A run holds this key from now on. */
  enter(recordKey: string, own: Ownership): void {
    this.#runs.set(recordKey, own)
  }

  /** It holds it no more; whether another attempt may run, the first in the line will ask. */
  leave(recordKey: string, own: Ownership): void {
    if (!this.#end(recordKey, own)) return
    const line = this.#lines.get(recordKey)
    if (line === undefined) return
    line.pauseMs = 0
    line.wakeFirst()
  }

  /** Its answer is stored: all in the line are given it. */
  completed(recordKey: string, own: Ownership, answer: Answer): void {
    if (!this.#end(recordKey, own)) return
    const { fingerprint, attempt } = own
    this.#lines.get(recordKey)?.tell({ state: 'completed', fingerprint, attempt, answer })
  }

  /** Not of another run, which has followed. */
  #end(recordKey: string, own: Ownership): boolean {
    return this.#runs.get(recordKey) === own && this.#runs.delete(recordKey)
  }

  /** Whether a run of this engine holds the key for the same operation. */
  hasRun(recordKey: string, fingerprint: string): boolean {
    return this.#runs.get(recordKey)?.fingerprint === fingerprint
  }

  /**
   * A place in the line of this key; `null`: there is no room. A scope that holds more than is still free gets none, so that
   * no scope can take the room of the others.
   */
  join(recordKey: string, fingerprint: string, scope: string): Place | null {
    const ofScope = this.#waitingOf.get(scope) ?? 0
    if (ofScope >= MOST_WAITING - this.#waiting) return null
    this.#waiting++
    this.#waitingOf.set(scope, ofScope + 1)
    let line = this.#lines.get(recordKey)
    if (line === undefined) {
      line = new Line()
      this.#lines.set(recordKey, line)
    }
    const place = new Place(line, () => !this.hasRun(recordKey, fingerprint))
    line.places.add(place)
    return place
  }

  /** Gives the place up: who is behind it moves up. */
  part(recordKey: string, scope: string, place: Place): void {
    this.#waiting--
    const ofScope = (this.#waitingOf.get(scope) ?? 0) - 1
    if (ofScope > 0) this.#waitingOf.set(scope, ofScope)
    else this.#waitingOf.delete(scope)
    place.line.places.delete(place)
    if (place.line.places.size === 0) this.#lines.delete(recordKey)
    else place.line.wakeFirst()
  }
}

/** Those that wait for one key, in the order in which they came. */
class Line {
  readonly places = new Set<Place>()
  /** How long the first in the line waits before it asks. */
  pauseMs = FIRST_POLL_MS

  get first(): Place | undefined {
    return this.places.values().next().value
  }

  wakeFirst(): void {
    this.first?.wake?.()
  }

  /** What the record has become for good. */
  tell(record: IdempotencyRecord): void {
    for (const place of this.places) {
      place.record = record
      place.wake?.()
    }
  }
}

/** The place of one duplicate in a line. */
export class Place {
  readonly line: Line
  /** What the record has become, as somebody else has heard. */
  record: IdempotencyRecord | undefined
  wake: (() => void) | undefined
  readonly #isFree: () => boolean

  constructor(line: Line, isFree: () => boolean) {
    this.line = line
    this.#isFree = isFree
  }

  /** It asks the store, for all behind it. */
  get asks(): boolean {
    return this.line.first === this && this.#isFree()
  }

  /** Waits until it is this place's turn to ask, somebody has told it what the record has become, or there is reason to look. */
  async turn(mostMs: number): Promise<void> {
    const { asks, line } = this
    const ms = Math.min(asks ? line.pauseMs : LOOK_MS, mostMs)
    if (asks) line.pauseMs = Math.min(Math.max(line.pauseMs * 1.5, FIRST_POLL_MS), LONGEST_POLL_MS)
    if (ms <= 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(over, Math.ceil(ms)).unref()
      const place = this
      function over(): void {
        clearTimeout(timer)
        place.wake = undefined
        resolve()
      }
      this.wake = over
    })
  }

  /** Tells all in the line what this one has heard. */
  tell(record: IdempotencyRecord): void {
    this.line.tell(record)
  }
}
