import type { Socket } from 'node:net'
import type { IdempotencyContext } from 'once-per-key'
import type { Check } from '../checks.js'
import type { Reading } from './identity.js'
import type { Kind } from './mounts.js'

/** A run as it starts, and what the service itself read of its request. */
export interface Start {
  readonly request: string
  readonly server: string
  /** `null`: misuse, which must not run. */
  readonly scope: string | null
  readonly isKeyRequired: boolean
  readonly reading: Reading
  readonly protection: IdempotencyContext | undefined
  readonly socket: Socket
}

export interface Run {
  readonly number: number
  /** To be told before the handler's last step. */
  ended(outcome: Kind['outcome']): void
}

/** What the service can tell when it closes. */
export interface Account {
  readonly runs: number
  readonly protectedRuns: number
  readonly successes: number
  /** Runs whose client left before their end. */
  readonly abandoned: number
  readonly checked: Readonly<Partial<Record<Check, number>>>
}

interface History {
  /** The run that has not ended. */
  running: { readonly request: string; readonly run: number; readonly socket: Socket } | null
  success: string | null
  /** The run whose effect is open: nothing but a success makes up for it. */
  open: string | null
}

/** Knows each run of the service, from its handler's side. */
export function createJournal(onViolation: (check: Check, request: string, story: string) => void) {
  const checked: Partial<Record<Check, number>> = {}
  const histories = new Map<string, History>()
  const counts = { runs: 0, protectedRuns: 0, successes: 0, abandoned: 0 }

  function expect(check: Check, holds: boolean, request: string, story: () => string): void {
    checked[check] = (checked[check] ?? 0) + 1
    if (!holds) onViolation(check, request, story())
  }

  function started(start: Start): Run {
    const { request, reading, protection, scope } = start
    const number = ++counts.runs
    const by = `${request} on ${start.server}, run ${number},`
    if (typeof reading !== 'object') {
      const isLegitimate = reading === 'uncovered' || (reading === 'absent' && !start.isKeyRequired)
      expect('S5', isLegitimate, request, () => `${by} ran although its key was ${reading}`)
      return { number, ended: () => {} }
    }
    const { key } = reading
    expect('S5', protection !== undefined, request, () => `${by} ran unprotected, although it had the key ${key}`)
    expect(
      'S9',
      scope !== null && (protection === undefined || protection.scope === scope),
      request,
      () => `${by} ran in the scope ${protection?.scope}; its merchant's is ${scope}`,
    )
    if (protection === undefined || scope === null) return { number, ended: () => {} }
    const used = JSON.stringify(protection.key)
    expect('S5', protection.key === key, request, () => `${by} ran under the key ${used} instead of ${key}`)
    return protectedRun(start, number, JSON.stringify([start.server, scope, key]), by, protection.previousOutcome)
  }

  function protectedRun(start: Start, number: number, name: string, by: string, told: string): Run {
    const { request, socket } = start
    counts.protectedRuns++
    const history = histories.get(name) ?? { running: null, success: null, open: null }
    histories.set(name, history)

    const { running, success, open } = history
    if (running?.socket.destroyed) {
      expect('S11', false, request, () => `${by} ran while ${running.request}, whose client had left, was running`)
    }
    expect('S1', running === null, request, () => `${by} ran while ${running?.request} was running: ${name}`)
    expect('S5', success === null, request, () => `${by} ran although ${success} had succeeded: ${name}`)
    expect(
      'S5',
      (told === 'unknown') === (open !== null),
      request,
      () => `${by} was told that the outcome before it is ${told}; may have had its effect: ${open}`,
    )
    const current = { request, run: number, socket }
    history.running = current
    return {
      number,
      ended(outcome) {
        if (history.running !== current) return
        history.running = null
        if (socket.destroyed) {
          counts.abandoned++
          checked.S11 = (checked.S11 ?? 0) + 1
        }
        if (outcome === 'success') {
          counts.successes++
          history.success = request
        } else if (outcome === 'open') history.open = request
      },
    }
  }

  return {
    started,
    account: (): Account => ({ ...counts, checked }),
  }
}

export type Journal = ReturnType<typeof createJournal>
