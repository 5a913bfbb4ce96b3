import type { CasStoreOptions, MaybePromise, machine } from 'once-per-key/core'

// What `casStore` is given in tests: the functions of a database, over a Map.

type StoredRecord = machine.StoredRecord
export type Rows = Map<string, StoredRecord>
type Functions = Required<Omit<CasStoreOptions<StoredRecord>, 'now'>>
export type MapOptions = { readonly [Name in keyof Functions]: NonNullable<Functions[Name]> }

const PAGE = 7

/** Rows in a Map, whose versions are the records themselves. */
export function mapOptions(rows: Rows = new Map()): MapOptions {
  const isUnchanged = (key: string, version: StoredRecord | null) => (rows.get(key) ?? null) === version
  return {
    read(key) {
      const record = rows.get(key)
      return record === undefined ? null : { record, version: record }
    },
    swap(key, version, record) {
      if (!isUnchanged(key, version)) return false
      rows.set(key, record)
      return true
    },
    remove: (key, version) => isUnchanged(key, version) && rows.delete(key),
    list(from) {
      const at = Number(from)
      const records = [...rows].slice(at, at + PAGE).map(([key, record]) => ({ key, record }))
      return { records, next: at + PAGE < rows.size ? `${at + PAGE}` : null }
    },
  }
}

/** Each function as a client of a network has it: it acts at some later time, and its reply comes at yet another. */
export function late(options: MapOptions): MapOptions {
  const delayed =
    <Given extends unknown[], Result>(act: (...given: Given) => MaybePromise<Result>) =>
    async (...given: Given) => {
      await someTurns()
      const result = await act(...given)
      await someTurns()
      return result
    }
  return {
    read: delayed(options.read),
    swap: delayed(options.swap),
    remove: delayed(options.remove),
    list: delayed(options.list),
  }
}

async function someTurns(): Promise<void> {
  for (let left = Math.floor(Math.random() * 4); left > 0; left--) await new Promise((turn) => setImmediate(turn))
}

/** Loses what it could have won, once in six times. */
export function unlucky(options: MapOptions): MapOptions {
  return {
    ...options,
    swap: (...given) => Math.random() >= 1 / 6 && options.swap(...given),
    remove: (...given) => Math.random() >= 1 / 6 && options.remove(...given),
  }
}
