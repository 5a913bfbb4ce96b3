/** Who keeps the time of the code that runs at the moment. */
export interface Timekeeper {
  now(): number
  /** Returns how to call it off. */
  startTimer(ms: number, fire: () => void): () => void
  /** How many more timers keep the process alive. */
  onReference(change: 1 | -1): void
}

let keeper: Timekeeper | null = null

/** What runs from here on, up to the next call, lives in this time; `null`: in real time. */
export function enter(next: Timekeeper | null): void {
  keeper = next
}

/** Lets whoever asks for the time or for a timer have those of the timekeeper, if there is one; returns how to undo it. */
export function installVirtualTime(): () => void {
  const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout, now: performance.now }
  const realNow = real.now.bind(performance)

  const virtual = (callback: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) =>
    keeper === null ? real.setTimeout(callback, ms, ...given) : new VirtualTimer(keeper, ms, () => callback(...given))
  globalThis.setTimeout = virtual as unknown as typeof setTimeout
  globalThis.clearTimeout = ((timer?: Parameters<typeof clearTimeout>[0] | VirtualTimer) => {
    if (timer instanceof VirtualTimer) timer.stop()
    else real.clearTimeout(timer)
  }) as typeof clearTimeout
  performance.now = () => (keeper === null ? realNow() : keeper.now())

  return () => {
    keeper = null
    globalThis.setTimeout = real.setTimeout
    globalThis.clearTimeout = real.clearTimeout
    performance.now = real.now
  }
}

/** As much of Node's timers as the library uses. */
class VirtualTimer {
  readonly #keeper: Timekeeper
  readonly #callOff: () => void
  #isPending = true
  #isReferenced = true

  constructor(own: Timekeeper, ms: number, callback: () => void) {
    this.#keeper = own
    own.onReference(1)
    this.#callOff = own.startTimer(Math.max(1, Math.trunc(ms)), () => {
      this.#end()
      callback()
    })
  }

  stop(): void {
    if (this.#isPending) this.#callOff()
    this.#end()
  }

  unref(): this {
    this.#dereference()
    return this
  }

  #end(): void {
    this.#isPending = false
    this.#dereference()
  }

  #dereference(): void {
    if (this.#isReferenced) this.#keeper.onReference(-1)
    this.#isReferenced = false
  }
}
