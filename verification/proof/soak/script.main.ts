// A script without a server: nothing but its callers, who wait for us, keeps it alive. It says what each of them was answered.
import type { IdempotencyRecord, Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { runner } from 'once-per-key/run'

/** Longer than the wait of a turn, and shorter than the limits below. */
const LATE_MS = 20
const TIMES = { leaseMs: 4_000, maxRunMs: 60_000, storeTimeoutMs: 1_000, inFlightWaitMs: 60_000, onEvent: () => {} }

/** By a timer that keeps no process alive. */
function later<Result>(act: () => Result): Promise<Awaited<Result>> {
  return new Promise((resolve, reject) => {
    setTimeout(
      () =>
        Promise.resolve()
          .then(act)
          .then(resolve as never, reject),
      LATE_MS,
    ).unref()
  })
}

/** A store that replies late. The first `fails.complete` and `fails.release` of these commands fail. */
function lateStore(fails: { complete?: number; release?: number } = {}): Store {
  const inner = new MemoryStore()
  const left = { complete: 0, release: 0, ...fails }
  const unlessDown = <Reply>(name: 'complete' | 'release', command: () => Reply): Reply => {
    if (left[name]-- > 0) throw new Error('down')
    return command()
  }
  return {
    begin: (key, claim) => later(() => inner.begin(key, claim)),
    renew: (key, own) => later(() => inner.renew(key, own)),
    complete: (key, own) => later(() => unlessDown('complete', () => inner.complete(key, own))),
    release: (key, own) => later(() => unlessDown('release', () => inner.release(key, own))),
    inspect: (key) => later(() => inner.inspect(key) as IdempotencyRecord | null),
    resolve: (key, resolution) => later(() => inner.resolve(key, resolution)),
  }
}

const operation = { scope: 'acme', key: 'order-1', input: null }

async function callers(): Promise<Record<string, unknown>> {
  const once = runner({ store: lateStore(), name: 'payouts', ...TIMES })
  const claimed = await once(operation, () => 'paid')
  const failing = { ...operation, key: 'order-2' }
  const failed = await once(failing, () => Promise.reject(new Error('declined'))).catch((error) => error.message)
  const inspected = await once.inspect(failing)
  const { ok: resolved } = await once.resolve({ ...failing, attempt: 1 }, 'failed')

  const store = lateStore()
  const owner = runner({ store, name: 'payouts', ...TIMES })
  const elsewhere = runner({ store, name: 'payouts', ...TIMES })
  const owned = owner(operation, () => later(() => 'paid'))
  const [waitedHere, waitedElsewhere] = await Promise.all([
    later(() => owner(operation, () => 'twice')),
    elsewhere(operation, () => 'twice'),
    owned,
  ])

  const pending = lateStore({ complete: 2 })
  const unconfirmed = runner({ store: pending, name: 'payouts', ...TIMES })
  await unconfirmed(operation, () => 'paid')
  await unconfirmed.idle()
  const stored = (await unconfirmed.inspect(operation))?.state

  return { claimed, failed, inspected: inspected?.state, resolved, waitedHere, waitedElsewhere, stored }
}

console.log(JSON.stringify(await callers()))
