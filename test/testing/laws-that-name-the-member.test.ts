import { inspect } from 'node:util'
import type { BeginReply, CommandReply, IdempotencyRecord, Store } from 'once-per-key/core'
import { storeLaws } from 'once-per-key/testing'
import { expect, test } from 'vitest'
import { mapStore } from '../support/map-store.js'
import { BROKEN_STORES } from './broken-stores.js'

// A law that a store broke printed two whole records below each other: what differed was left to the eye, and came behind the
// lines that a runner shows. A reply that was none said "due: 'a reply'".

type Open = (now: () => number) => Store

/** What the laws say of a store that breaks them, one after the other: the first lines of each failure. */
async function* complaintsOf(open: Open): AsyncGenerator<string> {
  for await (const { message } of failuresOf(open)) yield message.split('\n').slice(0, 10).join('\n')
}

async function* failuresOf(open: Open): AsyncGenerator<Error> {
  const laws: (() => Promise<void>)[] = []
  storeLaws(
    (_name, fn) => laws.push(fn),
    async () => {
      let now = 1
      const advance = (ms: number) => {
        now += ms
      }
      return { store: open(() => now), advance }
    },
  )
  for (const law of laws) {
    const failure = await law().catch((error: Error) => error)
    if (failure instanceof Error) yield failure
  }
}

/** A store whose records are changed on their way to whoever asked. */
const showing =
  (change: (record: IdempotencyRecord) => unknown): Open =>
  (now) => {
    const store = mapStore(now)
    const changed = <R extends BeginReply | CommandReply>(reply: R): R =>
      'record' in reply && reply.record !== null ? { ...reply, record: change(reply.record) } : reply
    return {
      ...store,
      begin: async (key, claim) => changed(await store.begin(key, claim)),
      renew: async (key, own) => changed(await store.renew(key, own)),
      complete: async (key, own) => changed(await store.complete(key, own)),
      release: async (key, own) => changed(await store.release(key, own)),
    }
  }

const ofAnswers = (change: object) =>
  showing((record) =>
    record.state === 'completed' && record.answer ? { ...record, answer: { ...record.answer, ...change } } : record,
  )
const ofLeases = (leaseRemainingMs: unknown) =>
  showing((record) => (record.state === 'in-flight' ? { ...record, leaseRemainingMs } : record))

const FAULTS: readonly { readonly open: Open; readonly says: string }[] = [
  { open: showing((record) => ({ ...record, attempt: 7 })), says: 'record.attempt: due 1, seen 7' },
  { open: showing(({ attempt: _, ...record }) => record), says: 'record.attempt: due 1, seen undefined' },
  { open: ofAnswers({ status: 202 }), says: 'record.answer.status: due 201, seen 202' },
  {
    open: ofAnswers({ headers: [['content-type', 'text/plain']] }),
    says: "record.answer.headers[0][1]: due 'application/json', seen 'text/plain'",
  },
  {
    open: ofAnswers({ headers: [] }),
    says: "record.answer.headers[0]: due [ 'content-type', 'application/json' ], seen nothing",
  },
  { open: ofAnswers({ body: null }), says: 'record.answer.body: due ' },
  { open: ofAnswers({ status: '201' }), says: "record.answer.status: due an integer, seen '201'" },
  { open: ofAnswers({ statusMessage: undefined }), says: 'record.answer.statusMessage: due a string, seen undefined' },
  { open: ofAnswers({ headers: {} }), says: 'record.answer.headers: due an array of pairs of strings, seen {}' },
  { open: ofAnswers({ body: 'text' }), says: "record.answer.body: due bytes or null, seen 'text'" },
  { open: ofLeases('5'), says: "record.leaseRemainingMs: due a finite number, seen '5'" },
  { open: ofLeases(-1), says: "record.lease: due 'live', seen 'lapsed'" },
  {
    open: showing((record) => ({ ...record, state: 'running' })),
    says: "record.state: due 'in-flight', 'completed' or 'failed', seen 'running'",
  },
  { open: showing((record) => ({ ...record, fingerprint: 1 })), says: 'record.fingerprint: due a string' },
  { open: showing(() => undefined), says: 'record: due an object, seen undefined' },
  { open: granting({ acquired: 1 }), says: 'acquired: due true or false, seen 1' },
  { open: granting({ attempt: 0 }), says: 'attempt: due an integer of at least 1, seen 0' },
  { open: granting({ previousOutcome: 'ok' }), says: "previousOutcome: due 'none', 'failed' or 'unknown', seen 'ok'" },
  { open: granting({ previousOutcome: 'failed' }), says: "previousOutcome: due 'none', seen 'failed'" },
]

function granting(change: object): Open {
  return (now) => {
    const store = mapStore(now)
    return {
      ...store,
      async begin(key, claim) {
        const begun = await store.begin(key, claim)
        return begun.acquired ? ({ ...begun, ...change } as BeginReply) : begun
      },
    }
  }
}

test.each(FAULTS)('a failure says in its first ten lines: $says', async ({ open, says }) => {
  const complaints: string[] = []
  for await (const complaint of complaintsOf(open)) {
    complaints.push(complaint)
    if (complaint.includes(`\n  ${says}`)) return
  }
  expect(complaints).toContainEqual(expect.stringContaining(`\n  ${says}`))
})

test.each(BROKEN_STORES)('what was due and what was seen stand in the second line, where $breaks', async ({ open }) => {
  for await (const complaint of complaintsOf(open)) {
    expect(complaint).toMatch(/^Broken: .*\n {2}(?:[\w.[\]]+: )?due .*, seen ./)
    return
  }
  expect.unreachable('no law was broken')
})

// A store of JSON answers a body of a MiB as an object with a member for each byte: runners printed it as millions of lines.
test('a failure is short, however large the values are', async () => {
  const lengths: number[] = []
  for await (const failure of failuresOf(showing((record) => JSON.parse(JSON.stringify(record))))) {
    const { message, stack, ...values } = failure
    lengths.push(inspect({ message, stack, ...values }, { depth: 9, maxStringLength: null }).length)
  }
  expect(lengths).not.toEqual([])
  expect(Math.max(...lengths)).toBeLessThan(40_000)
})
