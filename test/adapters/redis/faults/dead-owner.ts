import type { Store } from 'once-per-key/core'

/** The first claim finds the record of an owner that died: in flight, its lease lapsed. `whenDead` is called in between. */
export function behindADeadOwner(whenDead: () => void): (store: Store) => Store {
  let isFirst = true
  return (store) => ({
    async begin(key, claim) {
      if (isFirst) {
        isFirst = false
        await store.begin(key, { ...claim, token: 'of the dead', leaseMs: 1 })
        await lapsed(() => store.begin(key, { ...claim, unknownOutcome: 'refuse' }))
        whenDead()
      }
      return store.begin(key, claim)
    },
    renew: (key, own) => store.renew(key, own),
    complete: (key, own) => store.complete(key, own),
    release: (key, own) => store.release(key, own),
  })
}

async function lapsed(look: () => ReturnType<Store['begin']>): Promise<void> {
  while (true) {
    const seen = await look()
    if (!seen.acquired && seen.record.state === 'in-flight' && seen.record.leaseRemainingMs <= 0) return
  }
}
