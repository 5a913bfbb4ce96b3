import { createOperationEngine, machine, type Store, toListedRecord } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../adapters/claims.js'

const KEY = 'acme:order-1'
const SCOPE = { scope: 'acme' }

function engineOn(store: Store) {
  return createOperationEngine({ store, onEvent: () => {} })
}

/** A walk of two steps, each of which lists all; `between` them something happens. */
function walkedTwice(between: () => unknown): MemoryStore {
  const store = new MemoryStore()
  const walk = store.listScope.bind(store)
  return Object.assign(store, {
    async listScope(scope: string, from: string | null) {
      if (from !== null) await between()
      return { ...walk(scope), next: from === null ? 'second' : null }
    },
  })
}

test('a record that is open when a walk first meets it, and is forgotten later in the walk, is not left', async () => {
  const store = walkedTwice(() => store.complete(KEY, { ...ownOf('owner'), answer: ANSWER }))
  await store.begin(KEY, claimOf('owner'))
  expect(await engineOn(store).eraseScopeAnswers(SCOPE)).toEqual({ forgotten: 1, left: 0, unreadable: 0 })
})

test('a walk that fails on its way does not say that nothing changed', async () => {
  const store = walkedTwice(() => Promise.reject(new Error('connection lost')))
  await store.complete(KEY, { ...ownOf('owner'), answer: ANSWER })
  await expect(engineOn(store).eraseScopeAnswers(SCOPE)).rejects.toMatchObject({
    code: 'store_failed',
    message: expect.stringMatching(
      /^The store failed: connection lost\. The rest of the scope was not looked at: repeat it\./,
    ),
  })
  expect(await store.inspect(KEY)).toMatchObject({ answer: { body: null } })
})

test('a walk through a scope reads no body of an answer that has headers: a store may copy it', () => {
  const answer = {
    ...ANSWER,
    statusMessage: '',
    get body(): never {
      throw new Error('it was read')
    },
  }
  const { record } = machine.complete(null, { ...ownOf('owner'), answer: ANSWER }, 0)
  const found = toListedRecord({ ...(record as machine.StoredRecord & { state: 'completed' }), answer }, 0)
  expect(found?.record).toMatchObject({ answer: null })
})

test('recordsOf shows the records of a scope without their answers, also what could not be read', async () => {
  const store = new MemoryStore()
  await store.complete(KEY, { ...ownOf('owner'), answer: ANSWER })
  await store.complete('acme-2:order-1', { ...ownOf('owner'), answer: ANSWER })
  const walk = store.listScope.bind(store)
  const spoilt: Store = Object.assign(store, {
    listScope: (scope: string) => ({ ...walk(scope), unreadable: ['acme:order-2', 'acme-2:order-2'] }),
  })
  const found: object[] = []
  for await (const each of engineOn(spoilt).listScopeRecords(SCOPE)) found.push(each)
  expect(found).toMatchObject([
    {
      scope: 'acme',
      key: 'order-1',
      record: { state: 'completed', answer: null },
      retentionRemainingMs: expect.any(Number),
    },
    { scope: 'acme', key: 'order-2', record: null, retentionRemainingMs: null },
  ])
})
