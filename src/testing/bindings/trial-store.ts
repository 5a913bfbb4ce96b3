import { machine, type Store } from '../../core/index.js'

export interface TrialStore extends Store {
  /** The next `begin` fails, as if the store were away. */
  failNextBegin(): void
}

/** The machine in a Map: one process, and only as long as a test. */
export function trialStore(): TrialStore {
  const records = new Map<string, machine.StoredRecord>()
  let isAway = false

  function step<Reply>(key: string, command: (stored: machine.StoredRecord | null) => machine.Change<Reply>): Reply {
    const { record, reply } = command(records.get(key) ?? null)
    if (record !== null) records.set(key, record)
    return reply
  }

  return {
    failNextBegin() {
      isAway = true
    },
    async begin(key, claim) {
      const fails = isAway
      isAway = false
      if (fails) throw new Error('The store is away.')
      return step(key, (stored) => machine.begin(stored, claim, performance.now()))
    },
    renew: async (key, own) => step(key, (stored) => machine.renew(stored, own, performance.now())),
    complete: async (key, own) => step(key, (stored) => machine.complete(stored, own, performance.now())),
    release: async (key, own) => step(key, (stored) => machine.release(stored, own, performance.now())),
  }
}
