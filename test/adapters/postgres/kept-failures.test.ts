import type { PoolClient } from 'pg'
import { describe, expect, test, vi } from 'vitest'
import { BINDINGS } from './on-bindings.js'
import { openWithEffects } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { store, query } = await openWithEffects()

const TIMES = { leaseMs: 8_000, maxRunMs: 10_000, storeTimeoutMs: 2_000, keepFailure: () => true } as const
const MODES = [
  { mode: 'behind a claim', settings: TIMES },
  { mode: 'without a claim', settings: { ...TIMES, effects: 'in-transaction' } },
] as const
const OF_REQUESTS = BINDINGS.filter(([name]) => name !== 'a function' && name !== 'a webhook')
const insert = (tx: unknown) => (tx as PoolClient).query("INSERT INTO effects VALUES ('e1')")
const effects = async () => (await query('SELECT id FROM effects')).length
const records = () => query('SELECT state, attempt FROM once_per_key.records')

describe.each(OF_REQUESTS)('behind %s,', (_name, serve) => {
  test.each(MODES)(
    'a kept failure, $mode, rolls its transaction back, completes the record behind it, and is replayed',
    async ({ settings }) => {
      let runs = 0
      const { send } = await serve(store, settings, (context, answer) =>
        store.transaction(context, async (tx) => {
          runs += 1
          await insert(tx)
          return answer(402, 'declined')
        }),
      )
      expect(await send()).toEqual({ status: 402, id: 'declined' })
      expect(await records()).toEqual([{ state: 'completed', attempt: '1' }])
      expect(await send()).toEqual({ status: 402, id: 'declined' })
      expect([runs, await effects()]).toEqual([1, 0])
    },
  )

  test.each(MODES)('a kept failure, $mode, is kept outside of a transaction too', async ({ settings }) => {
    let runs = 0
    const { send } = await serve(store, settings, async (_context, answer) => {
      runs += 1
      return answer(422, 'wrong')
    })
    expect(await send()).toEqual({ status: 422, id: 'wrong' })
    expect(await send()).toEqual({ status: 422, id: 'wrong' })
    expect(await records()).toEqual([{ state: 'completed', attempt: '1' }])
    expect(runs).toBe(1)
  })
})
