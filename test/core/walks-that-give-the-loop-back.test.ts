import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOperationEngine, type Store } from 'once-per-key/core'
import { createRequestEngine, singleTenant } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { SqliteStore } from 'once-per-key/sqlite'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ANSWER } from '../adapters/claims.js'
import { A_DRIVER, openDatabase } from '../adapters/sqlite/drivers.js'

vi.setConfig({ testTimeout: 60_000 })

/** More than a store shows in one step. */
const RECORDS = 3_000

const TERMS = { scope: 'acme', fingerprint: 'f', retentionMs: 60_000 }

async function complete(store: Store, key: string): Promise<void> {
  await store.complete(key, { ...TERMS, token: key, attempt: 1, uncertain: false, answer: ANSWER })
}

async function failPerhaps(store: Store, key: string): Promise<void> {
  await store.release(key, { ...TERMS, token: key, attempt: 1, uncertain: true, failedMs: 60_000 })
}

/** How often the event loop has a turn while `work` goes on, in which a request could be served. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const next = () => {
    turns++
    if (!isOver) setImmediate(next)
  }
  setImmediate(next)
  await work()
  isOver = true
  return turns
}

const engineOf = (store: Store) => createOperationEngine({ store, onEvent: () => {} })
const scope = { scope: 'acme' }

async function count(walk: AsyncIterable<unknown>): Promise<number> {
  let found = 0
  for await (const _ of walk) found++
  return found
}

type End = (store: Store, key: string) => Promise<void>

/** Opens a store with so many records of this end. */
type Fill = (records: number, end: End) => Promise<Store>

const COLUMNS = 'format, state, token, fingerprint, attempt, uncertain, lease_until, expires_at, status, head, body'

const STORES: [string, Fill][] = [
  [
    'MemoryStore',
    async (records, end) => {
      const store = new MemoryStore({ maxScopeShare: 1 })
      for (let i = 0; i < records; i++) await end(store, `acme:${i}`)
      return store
    },
  ],
  [
    'SqliteStore',
    async (records, end) => {
      const folder = await mkdtemp(join(tmpdir(), 'once-per-key-walks-'))
      const database = openDatabase(A_DRIVER, join(folder, 'records.db'))
      onTestFinished(async () => {
        database.close()
        await rm(folder, { recursive: true })
      })
      const store = new SqliteStore({ database })
      await end(store, 'acme:0')
      database.exec(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${records - 1})
         INSERT INTO once_per_key_records (key, ${COLUMNS}) SELECT 'acme:' || i, ${COLUMNS} FROM n, once_per_key_records`,
      )
      return store
    },
  ],
]

describe.each(STORES)('on a %s', (_name, fill) => {
  test('a walk through a scope gives the loop back between its steps', async () => {
    const store = await fill(RECORDS, complete)
    let found = 0
    const turns = await turnsDuring(async () => {
      found = await count(engineOf(store).listScopeRecords(scope))
    })
    expect(found).toBe(RECORDS)
    expect(turns).toBeGreaterThanOrEqual(RECORDS / 1_000 - 1)
  })

  test('a walk through what is unknown gives the loop back between its steps', async () => {
    const store = await fill(RECORDS, failPerhaps)
    const { unknown } = createRequestEngine({ store, scope: singleTenant, onEvent: () => {} })
    let found = 0
    const turns = await turnsDuring(async () => {
      found = await count(unknown())
    })
    expect(found).toBe(RECORDS)
    expect(turns).toBeGreaterThanOrEqual(RECORDS / 1_000 - 1)
  })

  test('forgetting a scope gives the loop back after some answers', async () => {
    const store = await fill(400, complete)
    let forgotten = 0
    const turns = await turnsDuring(async () => {
      forgotten = (await engineOf(store).eraseScopeAnswers(scope)).forgotten
    })
    expect(forgotten).toBe(400)
    expect(turns).toBeGreaterThanOrEqual(400 / 8)
  })
})

describe('a step of a MemoryStore', () => {
  test('shows no more than some, whatever it keeps', async () => {
    const store = new MemoryStore({ maxScopeShare: 1 })
    for (let i = 0; i < RECORDS; i++) await failPerhaps(store, `acme:${i}`)
    for (const step of [store.list(null), store.listScope('acme', null)]) {
      expect(step.records.length).toBeLessThanOrEqual(1_000)
      expect(step.next).not.toBeNull()
    }
  })

  test('misses no record that stays, while others come and go between two steps', async () => {
    const store = new MemoryStore({ maxScopeShare: 1 })
    for (let i = 0; i < RECORDS; i++) await failPerhaps(store, `acme:${i}`)
    const seen = new Set<string>()
    let step = 0
    for (let from: string | null = null; ; step++) {
      const listed: ReturnType<MemoryStore['listScope']> = store.listScope('acme', from)
      for (const { key } of listed.records) seen.add(key)
      if (listed.next === null) break
      from = listed.next
      // Resolved and claimed again: it leaves its place, and another one takes it.
      for (let i = step; i < RECORDS; i += 7) {
        await store.resolve(`acme:${i}`, { token: 'operator', attempt: 1, answer: null, retentionMs: 1 })
        await failPerhaps(store, `acme:new ${step} ${i}`)
      }
    }
    const touched = (i: number) => [...Array(step).keys()].some((at) => i >= at && (i - at) % 7 === 0)
    const stayed = Array.from({ length: RECORDS }, (_, i) => i).filter((i) => !touched(i))
    expect(stayed.length).toBeGreaterThan(RECORDS / 4)
    for (const i of stayed) expect(seen).toContain(`acme:${i}`)
  })

  test('ends where a place is none of its own', () => {
    const store = new MemoryStore()
    expect(store.list('x')).toEqual({ records: [], next: null })
  })
})
