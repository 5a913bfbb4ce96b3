import type { EventEmitter } from 'node:events'
import { footprint } from './footprint.js'
import type { Service } from './service.js'

/** What would grow if requests left something behind. */
export interface Gauges {
  readonly bytes: number
  /** Timers that were set and have neither fired nor been cleared, those that keep no process alive among them. */
  readonly timers: number
  readonly listeners: number
  /** What keeps the process alive. */
  readonly handles: number
}

/** Reads them once nothing is under way any more: connections that were left are closed a little later. */
export async function read(service: Service, timers: Timers, handlesBefore = 0): Promise<Gauges> {
  for (let tries = 0; handles() > handlesBefore && tries < 20; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  const bytes = await footprint()
  return { bytes, timers: timers.live(), listeners: listenersOf(service), handles: handles() }
}

function handles(): number {
  return process.getActiveResourcesInfo().filter((type) => type !== 'Timeout' && type !== 'Immediate').length
}

function listenersOf({ server, sockets }: Service): number {
  let listeners = 0
  for (const emitter of [process as EventEmitter, server, ...sockets]) {
    for (const event of emitter.eventNames()) listeners += emitter.listenerCount(event)
  }
  return listeners
}

export interface Timers {
  live(): number
  /** Counts no more. */
  restore(): void
}

/** Counts the timers that are set from now on. Node tells only of those that keep the process alive. */
export function countTimers(): Timers {
  const { setTimeout: set, clearTimeout: clear } = globalThis
  const live = new Set<unknown>()

  const counting = (callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    const timer = set(() => {
      live.delete(timer)
      callback(...args)
    }, ms)
    live.add(timer)
    return timer
  }
  globalThis.setTimeout = Object.assign(counting, set) as typeof set
  globalThis.clearTimeout = (timer) => {
    live.delete(timer)
    clear(timer)
  }

  return {
    live: () => live.size,
    restore() {
      globalThis.setTimeout = set
      globalThis.clearTimeout = clear
    },
  }
}
