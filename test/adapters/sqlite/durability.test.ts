import { afterAll, describe, expect, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { DRIVER_NAMES } from './drivers.js'
import { openStore } from './open-store.js'
import { type StoreProcess, storeProcesses } from './store-processes.js'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const programs = await storeProcesses()
afterAll(() => programs.remove())

const ROUNDS = 10
const STREAMS = 8

describe.each(DRIVER_NAMES)('on %s', (driver) => {
  test('what a process was confirmed before it was killed is there, and whatever else is whole', async () => {
    const { file, store, query } = openStore(driver, { busyTimeoutMs: 30_000 })
    let [claimed, completed] = [0, 0]
    for (let round = 0; round < ROUNDS; round++) {
      const { begun, done } = await killedAmid(round)
      for (const key of begun) {
        const record = await store.inspect(key)
        if (done.has(key)) expect(structuredClone(record)).toMatchObject({ state: 'completed', answer: ANSWER })
        else expect(['in-flight', 'completed']).toContain(record?.state)
      }
      claimed += begun.size
      completed += done.size
      expect(query('PRAGMA integrity_check')).toMatchObject([{ integrity_check: 'ok' }])
    }
    // A round that did nothing shows nothing, nor does one that left nothing undone.
    expect(completed).toBeGreaterThan(ROUNDS * STREAMS)
    expect(claimed).toBeGreaterThan(completed)

    /** Streams of claims and completions in one process, which is killed in the middle of them. */
    async function killedAmid(round: number) {
      const one = programs.start(driver)
      await one.open(file)
      const begun = new Set<string>()
      const done = new Set<string>()
      let isOver = false
      const enough = new Promise<void>((resolve) => {
        for (let stream = 0; stream < STREAMS; stream++) void run(stream, resolve)
      })
      await enough
      isOver = true
      await one.kill()
      return { begun, done }

      async function run(stream: number, resolve: () => void): Promise<void> {
        for (let i = 0; !isOver; i++) {
          const key = `${round} ${stream} ${i}`
          await one.begin(key, claimOf('t1'))
          if (isOver) return
          begun.add(key)
          await one.complete(key, { ...ownOf('t1'), answer: ANSWER })
          if (isOver) return
          done.add(key)
          if (done.size > STREAMS + 7 * round) resolve()
        }
      }
    }
  })

  test('the key of a process that was killed is free once its lease has lapsed, and its outcome unknown', async () => {
    const { file, store, query } = openStore(driver)
    const one: StoreProcess = programs.start(driver)
    await one.open(file)
    await one.begin('k', { ...claimOf('t1'), leaseMs: 300 })
    await one.kill()
    expect(query('SELECT key FROM once_per_key_records')).toHaveLength(1)
    await expect
      .poll(() => store.begin('k', claimOf('t2')), { timeout: 20_000 })
      .toEqual({ acquired: true, attempt: 2, previousOutcome: 'unknown' })
  })
})
