import { Buffer } from 'node:buffer'
import { type Answer, machine, type Store } from 'once-per-key/core'
import { mapStore } from '../support/map-store.js'
import { alone, BROKEN_STEPS, type BrokenStore, broken } from './broken-steps.js'

type StoredRecord = machine.StoredRecord

/** One mistake each: in the state machine, or in what a store adds to it: bytes, names, atomicity. */
export const BROKEN_STORES: readonly BrokenStore[] = [
  ...BROKEN_STEPS,
  stores('the body is a string', ['answer: each of the 256 byte values'], (body) => ({
    ...body,
    body: body.body && Buffer.from(Buffer.from(body.body).toString('utf8')),
  })),
  stores('a body that was not kept is an empty one', ['answer: a body that was not kept stays null'], (answer) => ({
    ...answer,
    body: answer.body ?? new Uint8Array(0),
  })),
  stores('an empty body is one that was not kept', ['answer: an empty body'], (answer) => ({
    ...answer,
    body: answer.body?.byteLength === 0 ? null : answer.body,
  })),
  stores('headers are an object', ['answer: two headers of the same name'], (answer) => ({
    ...answer,
    headers: Object.entries(Object.fromEntries(answer.headers)),
  })),
  alone(
    stores('headers are cut to 32', ['answer: a hundred headers'], (answer) => ({
      ...answer,
      headers: answer.headers.slice(0, 32),
    })),
  ),
  alone(
    stores('header values are cut to 8 KiB', ['answer: a hundred headers'], (answer) => ({
      ...answer,
      headers: answer.headers.map(([name, value]) => [name, value.slice(0, 8_192)] as const),
    })),
  ),
  stores('header values are read as ASCII', ['answer: header values outside ASCII'], (answer) => ({
    ...answer,
    headers: answer.headers.map(([name, value]) => [name, Buffer.from(value, 'utf8').toString('ascii')] as const),
  })),
  stores('the status message is lost', ['answer: status and statusMessage'], (answer) => ({
    ...answer,
    statusMessage: '',
  })),
  {
    breaks: 'begin reads, waits and writes',
    foundBy: ['exclusive: of 50 begins at once, one acquires', 'exclusive: of 50 begins at once after a lapse'],
    open(now) {
      const records = new Map<string, StoredRecord>()
      const begin: Store['begin'] = async (key, claim) => {
        const read = records.get(key) ?? null
        await null
        const { record, reply } = machine.begin(read, claim, now())
        if (record !== null) records.set(key, record)
        return reply
      }
      return { ...mapStore(now, machine, records), begin }
    },
  },
  around('keys are decoded', ['apart: each key has its own record'], (store) =>
    named(store, (key) => {
      try {
        return decodeURIComponent(key)
      } catch {
        return key
      }
    }),
  ),
  around('keys are cut', ['apart: two of the longest storage keys'], (store) =>
    named(store, (key) => key.slice(0, 255)),
  ),
  around('keys lose their case', ['apart: each key has its own record'], (store) =>
    named(store, (key) => key.toLowerCase()),
  ),
  around('one token opens every key', ['apart: a token is not valid for another key'], (store) => {
    const owned = new Map<string, string>()
    return {
      ...store,
      async begin(key, claim) {
        const begun = await store.begin(key, claim)
        if (begun.acquired) owned.set(key, claim.token)
        return begun
      },
      complete: (key, own) =>
        store.complete(key, {
          ...own,
          token: [...owned.values()].includes(own.token) ? (owned.get(key) ?? own.token) : own.token,
        }),
    }
  }),
]

function stores(breaks: string, foundBy: readonly string[], change: (answer: Answer) => Answer): BrokenStore {
  return broken(breaks, foundBy, {
    complete: (record, own, now) => machine.complete(record, { ...own, answer: change(own.answer) }, now),
  })
}

function around(breaks: string, foundBy: readonly string[], wrap: (store: Store) => Store): BrokenStore {
  return { breaks, foundBy, open: (now) => wrap(mapStore(now)) }
}

function named(store: Store, name: (key: string) => string): Store {
  return {
    begin: (key, claim) => store.begin(name(key), claim),
    renew: (key, own) => store.renew(name(key), own),
    complete: (key, own) => store.complete(name(key), own),
    release: (key, own) => store.release(name(key), own),
  }
}
