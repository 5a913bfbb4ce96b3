import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import express from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import request from 'supertest'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { DRIVER_NAMES } from './drivers.js'
import { newFolder, openStore } from './open-store.js'
import { type StoreProcess, storeProcesses } from './store-processes.js'

/** ONCE_PER_KEY_RACES=100 races for 5,000 keys. */
const TIMES = Number(process.env.ONCE_PER_KEY_RACES ?? '1')
const KEYS = 50 * TIMES
const CLIENTS = 32
const PROCESSES = 4
const KEYS_AT_ONCE = 2

vi.setConfig({ testTimeout: 120_000 * TIMES, hookTimeout: 60_000 })

const programs = await storeProcesses()
afterAll(() => programs.remove())

describe.each(DRIVER_NAMES)('on %s', (driver) => {
  describe(`of ${CLIENTS} clients a key, in ${PROCESSES} processes on one file,`, () => {
    const processes = Array.from({ length: PROCESSES }, () => programs.start(driver))
    const all = <Result>(work: (store: StoreProcess, client: number) => Promise<Result>) =>
      Promise.all(
        Array.from({ length: CLIENTS }, (_, client) => work(processes[client % PROCESSES] as StoreProcess, client)),
      )

    test('one claims, one takes over when it dies, and all are given the answer of that one', async () => {
      const { file, database, store } = openStore(driver, { busyTimeoutMs: 30_000 })
      await store.migrate()
      await Promise.all(processes.map((each) => each.open(file)))
      database.exec('PRAGMA busy_timeout = 30000')
      const lapse = database.prepare('UPDATE once_per_key_records SET lease_until = 0 WHERE key = ?')
      const keys = Array.from({ length: KEYS }, () => randomUUID())
      const worker = async () => {
        for (let key = keys.pop(); key !== undefined; key = keys.pop()) await raceFor(key)
      }
      await Promise.all(Array.from({ length: KEYS_AT_ONCE }, worker))

      async function raceFor(key: string): Promise<void> {
        const begun = await all((each, client) => each.begin(key, claimOf(`first ${client}`)))
        const first = { acquired: true, attempt: 1, previousOutcome: 'none' }
        expect(begun.filter(({ acquired }) => acquired)).toEqual([first])

        lapse.run(key)
        const taken = await all((each, client) => each.begin(key, claimOf(`second ${client}`)))
        const second = { acquired: true, attempt: 2, previousOutcome: 'unknown' }
        expect(taken.filter(({ acquired }) => acquired)).toEqual([second])

        // The dead owner comes back, and everybody tries to complete.
        const owner = taken.findIndex(({ acquired }) => acquired)
        const done = await all((each, client) => {
          const own = ownOf(client === owner ? `second ${client}` : `first ${client}`)
          return each.complete(key, { ...own, answer: { ...ANSWER, status: 200 + client } })
        })
        expect(done.flatMap(({ ok }, client) => (ok ? [client] : []))).toEqual([owner])

        for (const replay of await all((each, client) => each.begin(key, claimOf(`third ${client}`)))) {
          const record = { state: 'completed', attempt: 2, answer: { ...ANSWER, status: 200 + owner } }
          expect(structuredClone(replay)).toMatchObject({ acquired: false, record })
        }
      }
    })

    test('one claims in a file that none of them has opened before', async () => {
      const { folder, remove } = newFolder()
      for (let round = 0; round < 20; round++) {
        const file = join(folder, `${round}.db`)
        await Promise.all(processes.map((each) => each.open(file)))
        const begun = await all((each, client) => each.begin('k', claimOf(`t${client}`)))
        expect(begun.filter(({ acquired }) => acquired)).toHaveLength(1)
      }
      remove()
    })
  })

  test('64 requests at once run each key once, and a process that comes later replays their answers', async () => {
    const { store, storeOn } = openStore(driver)
    const runs = new Map<string, number>()
    const appOn = (over: typeof store) => {
      const once = idempotency({ store: over, scope: singleTenant, inFlightWaitMs: 10_000 })
      const app = express().post('/payouts', once, async (req, res) => {
        const { key } = req.idempotency as { key: string }
        runs.set(key, (runs.get(key) ?? 0) + 1)
        await new Promise((resolve) => setImmediate(resolve))
        res.status(201).json({ key })
      })
      return { once, listening: app.listen(0, '127.0.0.1') }
    }
    for (const [over, replayed] of [
      [store, undefined],
      [storeOn(), 'true'],
    ] as const) {
      const { once, listening } = appOn(over)
      const post = (i: number) =>
        request(listening)
          .post('/payouts')
          .set('Idempotency-Key', `key-${i % 16}`)
      const responses = await Promise.all(Array.from({ length: 64 }, (_, i) => post(i)))
      for (const [i, { status, body, headers }] of responses.entries()) {
        expect(status).toBe(201)
        expect(body).toEqual({ key: `key-${i % 16}` })
        if (replayed !== undefined) expect(headers['idempotent-replayed']).toBe(replayed)
      }
      await once.idle()
      await new Promise((resolve) => listening.close(resolve))
    }
    expect([...runs.values()]).toEqual(Array(16).fill(1))
  })
})
