import type { PoolClient } from 'pg'
import { describe, expect, test, vi } from 'vitest'
import { gate } from '../../../support/gate.js'
import { BINDINGS, type Handler } from '../on-bindings.js'
import { openWithEffects } from '../open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { store, query } = await openWithEffects()

const MODE = { leaseMs: 8_000, maxRunMs: 10_000, storeTimeoutMs: 2_000, effects: 'in-transaction' } as const
const effects = async () => (await query('SELECT id FROM effects')).map(({ id }) => id)
const insert = (tx: unknown, id: string) => (tx as PoolClient).query('INSERT INTO effects VALUES ($1)', [id])

describe.each(BINDINGS)('one transaction and no claim, behind %s,', (_name, serve) => {
  test('has its effect once, and its answer is replayed', async () => {
    const { send } = await serve(store, MODE, (context, answer) =>
      store.transaction(context, async (tx) => {
        await insert(tx, 'e1')
        return answer(201, 'e1')
      }),
    )
    expect(await send()).toMatchObject({ status: 201, id: 'e1' })
    expect(await send()).toMatchObject({ status: 201, id: 'e1' })
    expect(await effects()).toEqual(['e1'])
    expect(await query('SELECT state FROM once_per_key.records')).toEqual([{ state: 'completed' }])
  })

  test('a throw is a failure that leaves nothing', async () => {
    const { send, idle } = await serve(store, MODE, async () => {
      throw new Error('no')
    })
    expect((await send()).status).toBe(500)
    await idle()
    expect(await query('SELECT state FROM once_per_key.records')).toEqual([])
  })

  test('a retry that fails because the first attempt succeeded gets that one’s answer', async () => {
    const [looked, committed] = [gate(), gate()]
    let runs = 0
    const handler: Handler = async (context, answer) => {
      runs += 1
      if (runs === 2) {
        looked.open()
        await committed.opened
        throw new Error('It is paid already.')
      }
      await looked.opened
      return store.transaction(context, async (tx) => {
        await insert(tx, 'e1')
        return answer(201, 'e1')
      })
    }
    const { send } = await serve(store, MODE, handler)
    const both = [send(), send()]
    // Whichever has run first.
    expect(await Promise.race(both)).toMatchObject({ status: 201, id: 'e1' })
    committed.open()
    expect(await Promise.all(both)).toContainEqual(expect.objectContaining({ status: 201, id: 'e1' }))
    for (const told of await Promise.all(both)) expect(told.status).toBe(201)
    expect(await effects()).toEqual(['e1'])
  })

  test('a success without a transaction is withheld', async () => {
    const { send } = await serve(store, MODE, async (_context, answer) => answer(201, 'e1'))
    expect((await send()).status).toBe(500)
    expect(await query('SELECT state, uncertain = 1 AS uncertain FROM once_per_key.records')).toEqual([
      { state: 'failed', uncertain: true },
    ])
  })
})
