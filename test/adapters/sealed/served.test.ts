import { once as event } from 'node:events'
import type { AddressInfo } from 'node:net'
import express, { type NextFunction, type Request, type Response } from 'express'
import { type IdempotencyContext, type IdempotencyEvent, idempotency, singleTenant } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { PostgresStore } from 'once-per-key/postgres'
import { newSealingKey, sealed } from 'once-per-key/sealed'
import { Pool } from 'pg'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { gate } from '../../support/gate.js'
import { newDatabase } from '../../support/postgres-server.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { DRIVER_NAMES } from '../sqlite/drivers.js'
import { openStore } from '../sqlite/open-store.js'
import { insert } from '../sqlite/served.js'

const KEY = newSealingKey()

/** What cannot be opened is asked for again until a lease is over. */
const FAST = { leaseMs: 400, storeTimeoutMs: 100 }

/** For a server that has just been started, on a machine that is busy. */
const STEADY = { leaseMs: 30_000, storeTimeoutMs: 5_000 }

type Handler = (res: Response, context: IdempotencyContext) => unknown

/** A service over a store, and how to ask it. */
async function served(store: Store, handler: Handler, terms = FAST) {
  const events: IdempotencyEvent[] = []
  const once = idempotency({ store, scope: singleTenant, onEvent: (event) => events.push(event), ...terms })
  const app = express().post('/payouts', express.json(), once, (req, res, next) => {
    Promise.resolve(handler(res, req.idempotency as IdempotencyContext)).catch(next)
  })
  app.use((error: Error, _req: Request, res: Response, _next: NextFunction) => {
    res.status(500).json({ error: error.message })
  })
  const server = app.listen(0, '127.0.0.1')
  await event(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once.idle()
  })
  const { port } = server.address() as AddressInfo
  const post = async (key = 'k') => {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key }
    const response = await fetch(`http://127.0.0.1:${port}/payouts`, { method: 'POST', headers, body: '{}' })
    const text = await response.text()
    return { status: response.status, replayed: response.headers.get('idempotent-replayed'), text }
  }
  const errors = () => events.flatMap((event) => (event.type === 'store_failed' ? [event.error] : []))
  const failures = () => errors().map(({ code }) => code)
  return { post, errors, failures, once }
}

const ANSWERED = { status: 201, text: '{"iban":"DE99"}' }
const pay: Handler = (res) => res.status(201).json({ iban: 'DE99' })

describe('over a store that keeps answers in memory', () => {
  test('a process without `sealed` refuses what was sealed, and says what opens it', async () => {
    const inner = new MemoryStore()
    await (await served(sealed(inner, { keys: [KEY] }), pay)).post()
    const { post, errors } = await served(inner, pay)
    expect((await post()).status).toBe(503)
    expect(errors()[0]?.message).toContain('one that was stored sealed is opened by `sealed(store, { keys })`')
  })

  test('a retry gets the answer, and an operator is shown it', async () => {
    const { post, once } = await served(sealed(new MemoryStore(), { keys: [KEY] }), pay)
    expect(await post()).toEqual({ ...ANSWERED, replayed: null })
    expect(await post()).toEqual({ ...ANSWERED, replayed: 'true' })
    const record = await once.inspect({ scope: 'single-tenant', key: 'k' })
    expect(record).toMatchObject({ state: 'completed', answer: { status: 201 } })
  })

  test('what an operator says is sealed, and replayed', async () => {
    const inner = new MemoryStore()
    const { post, once } = await served(sealed(inner, { keys: [KEY] }), (res) => res.status(500).end())
    await post()
    const name = { scope: 'single-tenant', key: 'k', attempt: 1 }
    const said = { completed: { status: 201, body: { iban: 'DE99' } } }
    expect(await once.resolve(name, said)).toMatchObject({ ok: true })
    expect(inner.inspect('single-tenant:k')).toMatchObject({ answer: { status: 0, statusMessage: 'sealed' } })
    expect(await post()).toMatchObject({ ...ANSWERED, replayed: 'true' })
  })

  test.each([
    ['with another key', (inner: MemoryStore) => sealed(inner, { keys: [newSealingKey()] }), 'seal_key_missing'],
    ['that does not seal', (inner: MemoryStore) => inner, 'reply_invalid'],
  ])('a process %s refuses the retry with 503, and runs nothing', async (_name, other, code) => {
    const inner = new MemoryStore()
    const first = await served(sealed(inner, { keys: [KEY] }), pay)
    await first.post()
    let runs = 0
    const second = await served(other(inner), () => (runs += 1))
    const { status, text } = await second.post()
    expect([status, JSON.parse(text).code, runs]).toEqual([503, 'store_unavailable', 0])
    await second.once.idle()
    expect(second.failures()[0]).toBe(code)
    // The release of its claim is answered.
    if (code === 'seal_key_missing') expect(second.failures()).toHaveLength(1)
    expect(await first.post()).toEqual({ ...ANSWERED, replayed: 'true' })
  })

  test('an owner that comes too late sends no success of its own, also where it cannot open the other one', async () => {
    let now = 1
    const terms = { leaseMs: 30_000, storeTimeoutMs: 2_000 }
    const inner = new MemoryStore({ now: () => now })
    const [entered, other] = [gate(), gate()]
    const waits: Handler = async (res, context) => {
      entered.open()
      await other.opened
      return pay(res, context)
    }
    const first = await served(sealed(inner, { keys: [KEY] }), waits, terms)
    const late = first.post()
    await entered.opened
    now += terms.leaseMs // The store's clock: by the owner's own, its lease lives.
    const second = await served(sealed(inner, { keys: [newSealingKey()] }), pay, terms)
    expect((await second.post()).status).toBe(201)
    other.open()
    const { status, text } = await late
    expect([status, JSON.parse(text).code]).toEqual([409, 'in_flight'])
  })

  test('an answer for which there is no room is completed without it', async () => {
    const store = sealed(new MemoryStore({ maxBytes: 20_000 }), { keys: [KEY] })
    await store.begin('acme:k', claimOf('owner'))
    await store.complete('acme:k', { ...ownOf('owner'), answer: { ...ANSWER, body: Buffer.alloc(30_000) } })
    const record = { state: 'completed', answer: { body: null } }
    expect(await store.begin('acme:k', claimOf('other'))).toMatchObject({ acquired: false, record })
  })
})

/** A store with transactions, as both of them are called. */
interface Transacting<Tx> {
  transaction(context: IdempotencyContext, work: (tx: Tx) => void): Promise<void>
  step(context: IdempotencyContext, label: string, work: (tx: Tx) => undefined): Promise<undefined>
}

describe.each(DRIVER_NAMES)('in a transaction on SQLite, by %s', (driver) => {
  function open() {
    const { store: inner, database, query } = openStore(driver)
    database.exec('PRAGMA journal_mode = WAL; CREATE TABLE effects (id TEXT PRIMARY KEY)')
    const stored = () => query('SELECT state, status, head, body FROM once_per_key_records')
    return { inner, database, store: sealed(inner, { keys: [KEY] }), stored, query }
  }

  test('the answer is sealed, whichever of the two is asked for it', async () => {
    const { inner, store, stored, query } = open()
    const asked: Transacting<Parameters<typeof insert>[0]>[] = [store, inner]
    const { post } = await served(store, async (res, context) => {
      const number = asked.length
      const by = asked.pop() as (typeof asked)[0]
      await by.step(context, 'reserve', (tx) => void insert(tx, `step ${number}`))
      await by.transaction(context, (tx) => {
        insert(tx, `effect ${number}`)
        pay(res, context)
      })
    })
    for (const key of ['k1', 'k2']) {
      expect(await post(key)).toEqual({ ...ANSWERED, replayed: null })
      expect(await post(key)).toEqual({ ...ANSWERED, replayed: 'true' })
    }
    expect(query('SELECT id FROM effects')).toHaveLength(4)
    expectSealed(stored(), 2)
  })

  test('the answer is sealed where it is given by hand', async () => {
    const { database, store, stored } = open()
    const { post } = await served(store, (res, context) => {
      database.exec('BEGIN')
      insert(database)
      store.completeIn(database, context, { status: 201, body: { iban: 'DE99' } })
      database.exec('COMMIT')
      res.status(200).end()
    })
    expect(await post()).toMatchObject(ANSWERED)
    expect(await post()).toMatchObject({ ...ANSWERED, replayed: 'true' })
    expectSealed(stored(), 1)
  })
})

describe('in a transaction on Postgres', async () => {
  const { url } = await newDatabase()
  const pool = new Pool({ connectionString: url, max: 10 })
  afterAll(async () => {
    await pool.end()
  })
  const store = sealed(new PostgresStore({ pool, transactions: pool, sweeps: false }), { keys: [KEY] })
  await store.migrate()
  await pool.query('CREATE TABLE effects (id text PRIMARY KEY)')
  const stored = async () => (await pool.query('SELECT state, status, head, body FROM once_per_key.records')).rows

  test('the answer is sealed, and replayed', async () => {
    const { post } = await served(
      store,
      async (res, context) => {
        await store.step(context, 'reserve', async (tx) => void (await tx.query("INSERT INTO effects VALUES ('step')")))
        await store.transaction(context, async (tx) => {
          await tx.query("INSERT INTO effects VALUES ('effect')")
          pay(res, context)
        })
      },
      STEADY,
    )
    expect(await post('whole')).toEqual({ ...ANSWERED, replayed: null })
    expect(await post('whole')).toEqual({ ...ANSWERED, replayed: 'true' })
    expectSealed(await stored(), 1)
  })

  test('the answer is sealed where it is given by hand', async () => {
    const { post } = await served(
      store,
      async (res, context) => {
        const tx = await pool.connect()
        await tx.query("BEGIN; INSERT INTO effects VALUES ('by hand')")
        await store.completeIn(tx, context, { status: 201, body: { iban: 'DE99' } })
        await tx.query('COMMIT')
        tx.release()
        res.status(200).end()
      },
      STEADY,
    )
    expect(await post('by hand')).toMatchObject(ANSWERED)
    expect(await post('by hand')).toMatchObject({ ...ANSWERED, replayed: 'true' })
    expectSealed(await stored(), 2)
  })
})

function expectSealed(rows: readonly Readonly<Record<string, unknown>>[], number: number): void {
  expect(rows).toHaveLength(number)
  for (const { body, ...rest } of rows) {
    expect(rest).toMatchObject({ state: 'completed', status: 0, head: '["sealed",[]]' })
    expect(Buffer.from(body as Uint8Array).toString('latin1')).not.toContain('DE99')
  }
}
