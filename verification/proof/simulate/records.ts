import { type BeginReply, type CommandReply, machine, type Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import type { Command, Request } from './history.js'
import type { Random } from './random.js'

export type Reply = BeginReply | CommandReply
type StoredRecord = machine.StoredRecord

/** A command was taken; `before` and `after`, where the records can be seen. */
export type Took = (reply: Reply, before?: StoredRecord | null, after?: StoredRecord | null) => void

/** Where records are kept, with the accidents that may befall them. */
export interface Records {
  take(command: Command, took: Took, failed: () => void): void
  /** Loses one record, or all; whose, is told. */
  lose(random: Random, lost: (scope: string | null, key: string | null) => void): void
  /** Makes a record unreadable, until it is repaired; `false`: there is none. */
  damage(random: Random): boolean
  repair(): void
}

/** A map and the machine. */
export function mapRecords(now: () => number): Records {
  const records = new Map<string, StoredRecord>()
  const owners = new Map<string, Request>()
  const damaged = new Set<string>()

  /** The newest ones are those that are in use. */
  function someKey(random: Random): string | undefined {
    return records.size === 0 ? undefined : random.pick([...records.keys()].slice(-6))
  }

  return {
    take(command, took, failed) {
      const { storageKey } = command
      if (damaged.has(storageKey)) return failed()
      const before = records.get(storageKey) ?? null
      const { record, reply } = step(command, before, now())
      if (record !== null) records.set(storageKey, record)
      if (!owners.has(storageKey)) owners.set(storageKey, command.request)
      took(reply, before, record)
    },
    lose(random, lost) {
      const key = someKey(random)
      if (key === undefined) return
      records.delete(key)
      const owner = owners.get(key) as Request
      lost(owner.scope, owner.key)
    },
    damage(random) {
      const key = someKey(random)
      if (key !== undefined) damaged.add(key)
      return key !== undefined
    },
    repair: () => damaged.clear(),
  }
}

/** The memory store itself; of its records, all are lost at once. */
export function memoryRecords(now: () => number): Records {
  const store = new MemoryStore({ now })
  return {
    take(command, took, failed) {
      send(store, command).then((reply) => took(reply), failed)
    },
    lose(_random, lost) {
      store.clear()
      lost(null, null)
    },
    damage: () => false,
    repair() {},
  }
}

function step({ name, terms }: Command, record: StoredRecord | null, now: number): machine.Change<Reply> {
  switch (name) {
    case 'begin':
      return machine.begin(record, terms as Parameters<Store['begin']>[1], now)
    case 'renew':
      return machine.renew(record, terms as Parameters<Store['renew']>[1], now)
    case 'complete':
      return machine.complete(record, terms as Parameters<Store['complete']>[1], now)
    case 'release':
      return machine.release(record, terms as Parameters<Store['release']>[1], now)
    case 'step':
      return machine.step(record, terms as Parameters<NonNullable<Store['step']>>[1], now)
  }
}

async function send(store: MemoryStore, { name, storageKey, terms }: Command): Promise<Reply> {
  switch (name) {
    case 'begin':
      return store.begin(storageKey, terms as Parameters<Store['begin']>[1])
    case 'renew':
      return store.renew(storageKey, terms as Parameters<Store['renew']>[1])
    case 'complete':
      return store.complete(storageKey, terms as Parameters<Store['complete']>[1])
    case 'release':
      return store.release(storageKey, terms as Parameters<Store['release']>[1])
    case 'step':
      return store.step(storageKey, terms as Parameters<NonNullable<Store['step']>>[1])
  }
}
