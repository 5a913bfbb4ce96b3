import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import type { Request, Response } from 'express'
import type { IdempotencyEvent, IdempotencyOptions, Store } from 'once-per-key'
import { isOneTransaction } from './demo-handler.js'
import { checkSwitch, choiceOf, type DemoSwitch } from './demo-switch.js'

const CRASH: DemoSwitch<'true' | 'held'> = {
  header: 'x-demo-crash',
  values: ['true', 'held'],
  code: 'crash_invalid',
  title: 'The demo crash is not valid',
}
/** A crash costs the clients of its key about this long. */
const LEASE_MS = 3_000
/** The longest that a claim may be under way: by so much its lease may end later in the store than where it was sent. */
const STORE_TIMEOUT_MS = LEASE_MS / 4

export const checkDemoCrash = checkSwitch(CRASH)

/** Whether the owner of this request is to die between its effect and its answer. */
export function isToCrash(req: Request): boolean {
  return choiceOf(req, CRASH) !== undefined
}

/**
 * How long an owner that dies inside of its transaction keeps it open: not at all, or until its lease is over (`held`), so that
 * the process can be killed there.
 */
export async function untilEndOfTransaction(req: Request): Promise<void> {
  if (choiceOf(req, CRASH) === 'held') await endOfLease(req)
}

/**
 * Options under which an owner can die while its process lives: a short lease, and nothing of the dead arrives. Where nothing
 * is claimed, it leaves nothing, and nothing is told of it.
 */
export function mortal<Req>(options: IdempotencyOptions<Req>): IdempotencyOptions<Req> {
  const { store, onEvent, effects } = options
  const terms = { ...options, leaseMs: LEASE_MS, maxRunMs: LEASE_MS, storeTimeoutMs: STORE_TIMEOUT_MS }
  if (effects === 'in-transaction') return { ...terms, onEvent() {} }
  return {
    ...terms,
    store: untilDeath(store),
    onEvent: (event) => (isOfTheDead(event) ? undefined : onEvent?.(event)),
  }
}

/** The store as a process sees it that dies: its lease is never renewed, and it releases nothing. */
function untilDeath(store: Store): Store {
  return {
    begin: (key, claim) => store.begin(key, claim),
    renew: () => new Promise(() => {}),
    complete: (key, own) => store.complete(key, own),
    ...(store.step && { step: store.step.bind(store) }),
    // Only `die` leaves an outcome unknown. An operation that failed before its effect is no crash.
    release: async (key, own) => (own.uncertain ? { ok: false, record: null } : store.release(key, own)),
  }
}

function isOfTheDead(event: IdempotencyEvent): boolean {
  return event.type === 'lease_lost' || (event.type === 'store_failed' && event.command === 'renew')
}

/**
 * Never answers. When the lease is over in the store too, or would be, the connection breaks, as it does when a process is
 * gone: the next attempt runs at once.
 */
export async function die(req: Request, res: Response): Promise<void> {
  await endOfLease(req)
  await setTimeout(STORE_TIMEOUT_MS, undefined, { ref: false })
  res.destroy()
}

async function endOfLease(req: Request): Promise<void> {
  const lease = isOneTransaction(req) ? undefined : req.idempotency?.signal
  if (lease === undefined) await setTimeout(LEASE_MS, undefined, { ref: false })
  else if (!lease.aborted) await once(lease, 'abort')
}
