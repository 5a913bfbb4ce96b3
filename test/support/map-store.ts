import { machine, type Store, toListedRecord, toListedRecordIfUnknown } from 'once-per-key/core'

/** What the commands do to a record: the machine, or something that is meant to be found out. */
export type Steps = Pick<
  typeof machine,
  'begin' | 'renew' | 'complete' | 'release' | 'step' | 'inspect' | 'resolve' | 'forget'
> & {
  readonly unknown?: typeof toListedRecordIfUnknown
  readonly listed?: typeof toListedRecord
}

/** The smallest store there is: the machine, a Map and a clock. */
export function mapStore(
  now: () => number,
  steps: Steps = machine,
  records = new Map<string, machine.StoredRecord>(),
): Store {
  function step<Reply>(key: string, command: (record: machine.StoredRecord | null) => machine.Change<Reply>): Reply {
    const { record, reply } = command(records.get(key) ?? null)
    if (record === null) records.delete(key)
    else records.set(key, record)
    return reply
  }

  return {
    begin: async (key, claim) => step(key, (record) => steps.begin(record, claim, now())),
    renew: async (key, own) => step(key, (record) => steps.renew(record, own, now())),
    complete: async (key, own) => step(key, (record) => steps.complete(record, own, now())),
    release: async (key, own) => step(key, (record) => steps.release(record, own, now())),
    step: async (key, own) => step(key, (record) => steps.step(record, own, now())),
    inspect: async (key) => step(key, (record) => steps.inspect(record, now())),
    list: () => ({
      records: [...records].flatMap(([key, record]) => {
        const unknown = (steps.unknown ?? toListedRecordIfUnknown)(record, now())
        return unknown === null ? [] : [{ key, ...unknown }]
      }),
      next: null,
    }),
    listScope: (scope) => ({
      records: [...records].flatMap(([key, record]) => {
        const found = key.startsWith(`${scope}:`) ? (steps.listed ?? toListedRecord)(record, now()) : null
        return found === null ? [] : [{ key, ...found }]
      }),
      next: null,
    }),
    forget: async (key, forgetting) => step(key, (record) => steps.forget(record, forgetting, now())),
    resolve: async (key, resolution) => step(key, (record) => steps.resolve(record, resolution, now())),
  }
}
