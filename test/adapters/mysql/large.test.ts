import { describe, expect, test, vi } from 'vitest'
import { claimOf, ownOf } from '../claims.js'
import { onDatabase } from './served.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const on = await onDatabase('DO 0', { max_allowed_packet: '1048576' })
const { store, insert, effects, errors } = on
on.clears()

const RESULT_BYTES = 60_000

describe('results of steps that together are larger than a statement may be', () => {
  const step = { attempt: 1, leaseMs: 30_000, uncertain: true }

  test('are done and not kept, and later steps still have room', async () => {
    await store.begin('k', claimOf('t'))
    for (let i = 0; i < 40; i++) {
      const change = { ...ownOf('t'), ...step, label: `step ${i} ${'é'.repeat(80)}`, order: 2 * i }
      expect(await store.step('k', { ...change, state: 'begun', result: null })).toEqual({ ok: true })
      const result = Buffer.alloc(i < 8 ? RESULT_BYTES : 500, 7)
      expect(await store.step('k', { ...change, order: 2 * i + 1, state: 'done', result })).toEqual({ ok: true })
    }
    const begun = await store.begin('k', claimOf('t'))
    const steps = begun.acquired ? (begun.steps ?? []) : []
    expect(steps).toHaveLength(40)
    expect(steps.every(({ state }) => state === 'done')).toBe(true)
    expect(steps.slice(0, 8).map(({ result }) => result?.length ?? null)).toEqual([
      ...Array(5).fill(RESULT_BYTES),
      ...Array(3).fill(null),
    ])
  })

  test('are done and not kept in transactions too, and each step has its effect once', async () => {
    const post = await on.serve(async (_req, res, context) => {
      for (let i = 0; i < 8; i++) {
        await store.step(context, `step ${i}`, async (tx) => {
          await insert(tx, `e${i}`)
          return 'x'.repeat(RESULT_BYTES)
        })
      }
      res.status(201).end()
    })
    expect(await post()).toMatchObject({ status: 201 })
    expect(errors).toEqual([])
    expect(await effects()).toHaveLength(8)
  })
})

test.each(['assumed', 'in-transaction'] as const)(
  'an answer that is larger than a statement may be rolls its transaction back with the reason (%s)',
  async (way) => {
    let bytes = 0
    const post = await on.serve(
      async (_req, res, context) => {
        await store.transaction(context, async (tx) => {
          await insert(tx)
          res.status(201).send('x'.repeat(bytes))
        })
      },
      { effects: way, maxAnswerBytes: 64_000_000 },
    )
    for (bytes of [600_000, 8_000_000, 30_000_000]) {
      expect(await post()).toMatchObject({ status: 500 })
      expect(errors.splice(0)).toMatchObject([{ code: 'packet_too_large' }])
    }
    expect(await effects()).toEqual([])
    bytes = 100_000
    expect(await post()).toMatchObject({ status: 201 })
  },
)
