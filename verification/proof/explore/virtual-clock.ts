/** Time that moves only when it is told to, for the timers of several processes. */
export interface VirtualClock {
  readonly now: () => number
  /** Lets a process work until it comes to rest; the timers that it sets are its own. */
  readonly as: (owner: number, work: () => void) => Promise<void>
  /** When the next timer of any of these processes is due; infinite: there is none. */
  readonly nextDueAt: (isAwake: (owner: number) => boolean) => number
  /** Fires what is due in a process, and what becomes due by that. */
  readonly fire: (owner: number) => Promise<void>
  readonly moveTo: (ms: number) => void
  /** What a process waits for, in the order in which it comes. */
  readonly timersOf: (owner: number) => readonly Timer[]
  readonly forget: (owner: number) => void
  readonly reset: () => void
  /** Gives the real time back. */
  readonly uninstall: () => void
}

interface Timer {
  readonly owner: number
  readonly ms: number
  readonly dueAt: number
  readonly run: () => void
  unref(): Timer
}

/** Takes the place of the global timers and of `performance.now`, for whatever runs inside `as`. */
export function installVirtualClock(): VirtualClock {
  const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout, now: performance.now }
  let timers: Timer[] = []
  let now = 0
  let acting: number | undefined

  function setVirtualTimeout(run: () => void, ms = 0): Timer | NodeJS.Timeout {
    if (acting === undefined) return real.setTimeout(run, ms)
    const timer: Timer = { owner: acting, ms, dueAt: now + ms, run, unref: () => timer }
    timers.push(timer)
    return timer
  }

  function clearVirtualTimeout(timer: Timer | NodeJS.Timeout | undefined): void {
    const at = timers.indexOf(timer as Timer)
    if (at >= 0) timers.splice(at, 1)
    else real.clearTimeout(timer as NodeJS.Timeout)
  }

  async function as(owner: number, work: () => void): Promise<void> {
    acting = owner
    work()
    await everyPromise()
    acting = undefined
  }

  function earliest(fits: (timer: Timer) => boolean): Timer | undefined {
    let first: Timer | undefined
    for (const timer of timers) if (fits(timer) && (first === undefined || timer.dueAt < first.dueAt)) first = timer
    return first
  }

  const nextDueAt: VirtualClock['nextDueAt'] = (isAwake) =>
    earliest(({ owner }) => isAwake(owner))?.dueAt ?? Number.POSITIVE_INFINITY

  globalThis.setTimeout = setVirtualTimeout as typeof setTimeout
  globalThis.clearTimeout = clearVirtualTimeout as typeof clearTimeout
  performance.now = () => (acting === undefined ? real.now.call(performance) : now)

  return {
    now: () => now,
    as,
    nextDueAt,
    async fire(owner) {
      for (;;) {
        const timer = earliest((each) => each.owner === owner && each.dueAt <= now)
        if (timer === undefined) return
        timers.splice(timers.indexOf(timer), 1)
        await as(owner, timer.run)
      }
    },
    moveTo(ms) {
      now = ms
    },
    timersOf: (owner) => timers.filter((timer) => timer.owner === owner).sort((a, b) => a.dueAt - b.dueAt),
    forget(owner) {
      timers = timers.filter((timer) => timer.owner !== owner)
    },
    reset() {
      timers = []
      now = 0
      acting = undefined
    },
    uninstall() {
      globalThis.setTimeout = real.setTimeout
      globalThis.clearTimeout = real.clearTimeout
      Reflect.deleteProperty(performance, 'now')
    },
  }
}

/** A turn of the event loop: by its end, all promises that could go on have gone on. */
function everyPromise(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
