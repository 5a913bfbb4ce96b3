import { casStore, type machine } from 'once-per-key/core'

export function mapStore(now = () => performance.now()) {
  const rows = new Map<string, machine.StoredRecord>()
  return casStore({
    read: (key) => ({ record: rows.get(key) ?? null, version: rows.get(key) ?? null }),
    swap: (key, version, record) => {
      const isUnchanged = (rows.get(key) ?? null) === version
      if (isUnchanged) rows.set(key, record)
      return isUnchanged
    },
    now,
  })
}
