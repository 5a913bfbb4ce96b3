import { machine, type Store } from 'once-per-key/core'
import { mapStore } from '../support/map-store.js'
import type { BrokenStore } from './broken-steps.js'

type StoredRecord = machine.StoredRecord
type Records = Map<string, StoredRecord>

/** One command each that is no atomic step: it reads, waits, and writes. */
export const BROKEN_RACES: readonly BrokenStore[] = [
  racing(
    'renew writes what it read, if the token is still the same',
    [
      'atomic (in-flight, lease live): renew and complete',
      'atomic (in-flight, lease live): renew and release',
      'atomic (in-flight, lease live): step and renew',
    ],
    (records, now, store) => ({
      async renew(key, own) {
        const { record, reply } = machine.renew(await read(records, key), own, now())
        if (records.get(key)?.token !== own.token) return store.renew(key, own)
        if (record !== null) records.set(key, record)
        return reply
      },
    }),
  ),
  racing(
    'a begin that is sent again writes what it read, if the token is still the same',
    [
      'atomic (in-flight, lease live): begin again and complete',
      'atomic (in-flight, lease live): begin again and release',
      'atomic (in-flight, lease live): step and begin again',
    ],
    (records, now, store) => ({
      async begin(key, claim) {
        if (records.get(key)?.token !== claim.token) return store.begin(key, claim)
        const { record, reply } = machine.begin(await read(records, key), claim, now())
        if (records.get(key)?.token !== claim.token) return store.begin(key, claim)
        if (record !== null) records.set(key, record)
        return reply
      },
    }),
  ),
  racing(
    'release writes over whatever came between',
    [
      "atomic (in-flight, lease lapsed): another's begin and release",
      'atomic (in-flight, lease lapsed): resolve as',
      "atomic (expired): another's begin and release",
    ],
    (records, now, store) => ({
      async release(key, own) {
        if (!isLapsed(records.get(key), now())) return store.release(key, own)
        const { record, reply } = machine.release(await read(records, key), own, now())
        if (record !== null) records.set(key, record)
        return reply
      },
    }),
  ),
  racing(
    'complete writes over whatever came between',
    [
      "atomic (none): another's begin and complete",
      "atomic (in-flight, lease lapsed): another's begin and complete",
      'atomic (in-flight, lease live): release and complete',
      'atomic (in-flight, lease lapsed): resolve as failed and complete',
      'atomic (in-flight, lease lapsed): resolve as completed and complete',
      "atomic (expired): another's begin and complete",
      "atomic (in-flight, lease live): another's complete and ",
      'atomic (completed): forget and complete',
    ],
    (records, now) => ({
      async complete(key, own) {
        const { record, reply } = machine.complete(await read(records, key), own, now())
        if (record !== null) records.set(key, record)
        return reply
      },
    }),
  ),
  racing(
    'a step writes what it read, if the attempt still runs',
    ['atomic (in-flight, lease live): step and another step'],
    (records, now, store) => ({
      async step(key, own) {
        const { record, reply } = machine.step(await read(records, key), own, now())
        if (!isRunBy(own.token, records.get(key))) return store.step(key, own)
        if (record !== null) records.set(key, record)
        return reply
      },
    }),
  ),
  racing(
    'a failure keeps the steps that it read, if the attempt still runs',
    ['atomic (in-flight, lease live): step and release as uncertain'],
    (records, now, store) => ({
      async release(key, own) {
        const { record, reply } = machine.release(await read(records, key), own, now())
        if (!isRunBy(own.token, records.get(key))) return store.release(key, own)
        if (record !== null) records.set(key, record)
        return reply
      },
    }),
  ),
  racing(
    'a release that is sent again writes what it read',
    [
      "atomic (failed, certain): release and another's begin",
      "atomic (failed, uncertain): release and another's begin",
    ],
    (records, now, store) => ({
      async release(key, own) {
        if (records.get(key)?.state !== 'failed') return store.release(key, own)
        const { record, reply } = machine.release(await read(records, key), own, now())
        if (record !== null) records.set(key, record)
        return reply
      },
    }),
  ),
  racing(
    'a renewal that is stale writes what it read',
    ["atomic (in-flight, lease live): another's renew and "],
    (records, now, store) => ({
      async renew(key, own) {
        if (records.get(key)?.state !== 'in-flight' || isRunBy(own.token, records.get(key)))
          return store.renew(key, own)
        const { record, reply } = machine.renew(await read(records, key), own, now())
        if (record !== null) records.set(key, record)
        return reply
      },
    }),
  ),
  racing(
    'an expired record is removed, and then the key is claimed',
    ["atomic (expired): another's begin and "],
    (records, now, store) => ({
      async begin(key, claim) {
        const record = await read(records, key)
        if (record !== null && now() >= record.expiresAt) records.delete(key)
        await null
        return store.begin(key, claim)
      },
    }),
  ),
  racing('inspect writes what it read', ['atomic (in-flight, lease live): inspect and '], (records, now) => ({
    async inspect(key) {
      const { record, reply } = machine.inspect(await read(records, key), now())
      if (record !== null) records.set(key, record)
      return reply
    },
  })),
  racing(
    'forget writes what it read',
    ['atomic (in-flight, lease live): forget and ', "atomic (failed, certain): forget, removing and another's begin"],
    (records, now) => ({
      async forget(key, forgetting) {
        const { record, reply } = machine.forget(await read(records, key), forgetting, now())
        if (record === null) records.delete(key)
        else records.set(key, record)
        return reply
      },
    }),
  ),
  racing(
    'a resolution writes over whatever came between, if the attempt is still the same',
    [
      'atomic (in-flight, lease lapsed): resolve as failed and complete',
      'atomic (in-flight, lease lapsed): resolve as failed and ',
      'atomic (in-flight, lease lapsed): resolve as completed and ',
      'resolve: of 20 operators at once, one resolves',
    ],
    (records, now, store) => ({
      async resolve(key, resolution) {
        const before = await read(records, key)
        const { record, reply } = machine.resolve(before, resolution, now())
        if (records.get(key)?.attempt !== before?.attempt) return store.resolve(key, resolution)
        if (record !== null) records.set(key, record)
        return reply
      },
    }),
  ),
]

function racing(
  breaks: string,
  foundBy: readonly string[],
  commands: (records: Records, now: () => number, store: Required<Store>) => Partial<Store>,
): BrokenStore {
  return {
    breaks,
    foundBy,
    alone: true,
    open(now) {
      const records: Records = new Map()
      const store = mapStore(now, machine, records) as Required<Store>
      return { ...store, ...commands(records, now, store) }
    },
  }
}

async function read(records: Records, key: string): Promise<StoredRecord | null> {
  const record = records.get(key) ?? null
  await null
  return record
}

function isRunBy(token: string, record: StoredRecord | undefined): boolean {
  return record?.state === 'in-flight' && record.token === token
}

function isLapsed(record: StoredRecord | undefined, now: number): boolean {
  return record?.state === 'in-flight' && now >= record.leaseUntil
}
