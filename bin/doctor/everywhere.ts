import { walkStorageKeys } from '../keys.js'
import { createOperatorCommands } from '../operator.js'
import type { Target } from '../target.js'
import {
  createFindingIfBad,
  createGreenFinding,
  createRedFinding,
  createYellowFinding,
  type Finding,
} from './finding.js'

const PINGS = 21
const SLOW_MS = 10
const VERY_SLOW_MS = 500
const SKEW_MS = 1_000
const MOST_READ = 1_000

/** The median of some commands, one behind the other, in milliseconds. */
export async function measureLatency(ping: () => Promise<unknown>): Promise<Finding> {
  const times: number[] = []
  for (let i = 0; i < PINGS; i++) {
    const from = performance.now()
    await ping()
    times.push(performance.now() - from)
  }
  const ms = times.toSorted((a, b) => a - b)[(PINGS - 1) / 2] as number
  const found = `${ms.toFixed(1)} ms for a command from here`
  const wayOut =
    'Each request with a key sends two commands: run the service near to its store. From elsewhere this says little.'
  if (ms > VERY_SLOW_MS) return createRedFinding('latency', found, `${wayOut} Above storeTimeoutMs (2 s) they fail.`)
  return createFindingIfBad(ms > SLOW_MS, 'latency', found, createYellowFinding, wayOut)
}

/** `told`: the server's clock, in milliseconds, as it was between two looks at ours. */
export async function compareClock(ask: () => Promise<number>): Promise<Finding> {
  const from = Date.now()
  const told = await ask()
  const offMs = Math.round(told - (from + Date.now()) / 2)
  const wayOut =
    'Leases and retention count by the server’s clock, so a difference does no harm. A clock that is corrected by a jump does: ' +
    'run NTP on both, and let it slew.'
  return createFindingIfBad(
    Math.abs(offMs) > SKEW_MS,
    'clock',
    `${offMs} ms from this machine’s`,
    createYellowFinding,
    wayOut,
  )
}

/** What there is to settle, and whether what is kept can be read. */
export async function examineRecords(target: Target): Promise<Finding[]> {
  let unknown = 0
  for await (const _ of createOperatorCommands(target.store).unknown()) unknown++
  const settled = createFindingIfBad(
    unknown > 0,
    'unknown outcomes',
    unknown === 0 ? 'none' : `${unknown}`,
    createYellowFinding,
    'Look at them with `once-per-key unknown`, and settle what no retry will.',
  )
  return [settled, await examineReadability(target)]
}

async function examineReadability(target: Target): Promise<Finding> {
  let read = 0
  let unreadable = 0
  let reason = ''
  for await (const keys of walkStorageKeys(target)) {
    for (const key of keys.slice(0, MOST_READ - read)) {
      read++
      try {
        await target.store.inspect?.(key)
      } catch (error) {
        unreadable++
        reason = String((error as Error).message)
      }
    }
    if (read >= MOST_READ) break
  }
  if (read === 0 && target.kind === 'redis')
    return createGreenFinding(
      'records',
      `none that begin with ${target.prefix}; if the store has another prefix, give it as --prefix`,
    )
  const found = `${read - unreadable} of ${read} that were looked at can be read`
  if (unreadable === 0) return createGreenFinding('records', found)
  return createRedFinding('records', found, `Retries of the others get 503: ${reason}`)
}
