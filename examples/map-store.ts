import { machine, type Store } from 'once-per-key/core'

export function mapStore(now = () => performance.now()): Store {
  const records = new Map<string, machine.StoredRecord>()

  async function step<R>(key: string, command: (stored: machine.StoredRecord | null) => machine.Change<R>): Promise<R> {
    const { record, reply } = command(records.get(key) ?? null)
    if (record !== null) records.set(key, record)
    return reply
  }

  return {
    begin: (key, claim) => step(key, (stored) => machine.begin(stored, claim, now())),
    renew: (key, own) => step(key, (stored) => machine.renew(stored, own, now())),
    complete: (key, own) => step(key, (stored) => machine.complete(stored, own, now())),
    release: (key, own) => step(key, (stored) => machine.release(stored, own, now())),
  }
}
