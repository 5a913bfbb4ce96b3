import type { ChildProcess } from 'node:child_process'

/** What a beat takes at least. */
export const BEAT_MS = 50
const BEAT = 'beat'

export function beatsIn(ms: number): number {
  return Math.ceil(ms / BEAT_MS)
}

/**
 * Counts the beats of a process: in each, a timer fires in it, and its event loop and ours have gone round. A process that is
 * stopped, or has to wait for the processor, has none. So a limit in beats is as long as one in milliseconds on an idle
 * machine, and on a busy one it is over only when the process could have done what it is waited for.
 */
export class Pulse {
  readonly #child: ChildProcess | undefined
  readonly #waiting = new Set<() => void>()
  #beats = 0
  #timer: NodeJS.Timeout | undefined
  #isAsked = false

  /** Of another process, which must answer with `answerBeats`; without one, of this process. */
  constructor(child?: ChildProcess) {
    this.#child = child
    child?.on('message', (message) => {
      if (message === BEAT) this.#turn()
    })
    child?.once('disconnect', () => this.#turn())
    this.#next()
  }

  get beats(): number {
    return this.#beats
  }

  /** Rejects with `Late` when so many beats have passed first: whatever hangs, the proof goes on. */
  async within<Value>(limit: number, promise: Value | Promise<Value>): Promise<Value> {
    const end = this.#beats + limit
    let wait: (() => void) | undefined
    const late = new Promise<never>((_resolve, reject) => {
      wait = () => {
        if (this.#beats >= end) reject(new Late(limit))
      }
      this.#waiting.add(wait)
      this.#next()
    })
    try {
      return await Promise.race([promise, late])
    } finally {
      this.#waiting.delete(wait as () => void)
      if (this.#waiting.size === 0) this.#rest()
    }
  }

  /** What has come in the same turn is read before the beat counts. */
  #turn(): void {
    setImmediate(() => {
      this.#isAsked = false
      this.#beats++
      for (const wait of [...this.#waiting]) wait()
      this.#next()
    })
  }

  #next(): void {
    if (this.#isAsked || this.#timer !== undefined) return
    if (this.#child?.connected === true) {
      this.#isAsked = true
      this.#child.send(BEAT, () => {}) // Where it has died meanwhile, it disconnects.
    } else if (this.#waiting.size > 0) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined
        this.#turn()
      }, BEAT_MS)
    }
  }

  #rest(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

export class Late extends Error {
  constructor(beats: number) {
    super(`There was no answer within ${beats} beats of ${BEAT_MS} ms each.`)
  }
}

/** Of this process. */
export const ownPulse = new Pulse()

/** Answers a parent that counts the beats of this process. Keeps it no more alive than a listener to its parent does. */
export function answerBeats(): void {
  process.on('message', (message) => {
    if (message !== BEAT) return
    setTimeout(() => {
      if (process.connected) process.send?.(BEAT, undefined, undefined, () => {})
    }, BEAT_MS).unref()
  })
}

/** Unless this process has ended by then: it is not kept alive. */
export function afterBeats(beats: number, act: () => void): void {
  if (beats === 0) act()
  else setTimeout(() => afterBeats(beats - 1, act), BEAT_MS).unref()
}
