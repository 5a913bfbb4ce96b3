import { ietfDraft07 } from 'once-per-key'
import { describe, expect, test } from 'vitest'
import { gate } from '../../support/gate.js'
import { DRIVER_NAMES } from './drivers.js'
import { insert, served } from './served.js'

const MODES = [
  { name: 'behind a claim', options: { profile: ietfDraft07 } },
  { name: 'without a claim', options: { profile: ietfDraft07, effects: 'in-transaction' } },
] as const

describe.each(DRIVER_NAMES)('on %s,', (driver) => {
  describe.each(MODES)('a failure that is kept, $name,', ({ options }) => {
    test('rolls its transaction back, completes the record behind it, and is replayed', async () => {
      const { store, serve, post, effects, record, types } = await served(driver)
      await serve(async (res, context) => {
        await store.transaction(context, (tx) => {
          insert(tx)
          res.status(402).json({ declined: true })
        })
      }, options)
      expect(await post()).toMatchObject({ status: 402, body: { declined: true }, replayed: null })
      expect(await record()).toMatchObject({ state: 'completed', attempt: 1, answer: { status: 402 } })
      expect(await post()).toMatchObject({ status: 402, body: { declined: true }, replayed: 'true' })
      expect(effects()).toEqual([])
      expect(types()).toEqual(['claimed', 'completed', 'replayed'])
    })

    test('outside of a transaction completes the record too', async () => {
      const { serve, post, record, types } = await served(driver)
      await serve(async (res) => res.status(422).json({ wrong: true }), options)
      expect(await post()).toMatchObject({ status: 422, replayed: null })
      expect(await record()).toMatchObject({ state: 'completed', attempt: 1, answer: { status: 422 } })
      expect(await post()).toMatchObject({ status: 422, body: { wrong: true }, replayed: 'true' })
      expect(types()).toEqual(['claimed', 'completed', 'replayed'])
    })

    test('is not a failure of 500 or more: that runs again', async () => {
      const { store, serve, post, effects } = await served(driver)
      let runs = 0
      await serve(async (res, context) => {
        runs += 1
        await store.transaction(context, (tx) => {
          insert(tx)
          res.status(runs === 1 ? 503 : 201).json({})
        })
      }, options)
      expect(await post()).toMatchObject({ status: 503 })
      expect(await post()).toMatchObject({ status: 201, replayed: null })
      expect(effects()).toEqual(['e1'])
    })
  })

  test('without a claim, a failure is not kept where the first attempt succeeded meanwhile', async () => {
    const { store, serve, post, effects } = await served(driver)
    const [looked, committed] = [gate(), gate()]
    let runs = 0
    await serve(async (res, context) => {
      runs += 1
      if (runs === 2) {
        looked.open()
        await committed.opened
        return res.status(402).json({ declined: true })
      }
      await looked.opened
      return store.transaction(context, (tx) => {
        insert(tx)
        res.status(201).json({ id: 'e1' })
      })
    }, MODES[1].options)
    const both = [post(), post()]
    // Whichever has run first.
    expect(await Promise.race(both)).toMatchObject({ status: 201 })
    committed.open()
    for (const told of await Promise.all(both)) expect(told).toMatchObject({ status: 201, body: { id: 'e1' } })
    expect(effects()).toEqual(['e1'])
  })

  test('without a claim, an attempt whose key was kept as failed meanwhile commits nothing, and gets that failure', async () => {
    const { store, serve, post, effects } = await served(driver)
    const [looked, kept] = [gate(), gate()]
    let runs = 0
    await serve(async (res, context) => {
      runs += 1
      if (runs === 2) {
        looked.open()
        return res.status(402).json({ declined: true })
      }
      await looked.opened
      await kept.opened
      return store.transaction(context, (tx) => {
        insert(tx)
        res.status(201).json({ id: 'e1' })
      })
    }, MODES[1].options)
    const both = [post(), post()]
    expect(await Promise.race(both)).toMatchObject({ status: 402, replayed: null })
    kept.open()
    for (const told of await Promise.all(both)) expect(told).toMatchObject({ status: 402, body: { declined: true } })
    expect(effects()).toEqual([])
  })

  test('without a claim, a key that cannot be claimed for it is told to retry, and is free', async () => {
    const { store, serve, post, record } = await served(driver)
    const { begin } = store
    store.begin = async () => {
      store.begin = begin
      throw new Error('The disk is full.')
    }
    await serve(async (res) => res.status(402).json({ declined: true }), MODES[1].options)
    expect(await post()).toMatchObject({ status: 503, body: { code: 'store_unavailable' } })
    expect(await post()).toMatchObject({ status: 402, replayed: null })
    expect(await record()).toMatchObject({ state: 'completed', answer: { status: 402 } })
  })

  test('without a claim, it follows a record that the leased way left as uncertain', async () => {
    const { serve, post, record } = await served(driver)
    await serve(async (res) => res.status(500).json({}))
    await post()
    await serve(async (res) => res.status(404).json({}), MODES[1].options)
    expect(await post()).toMatchObject({ status: 404, replayed: null })
    expect(await record()).toMatchObject({ state: 'completed', attempt: 2, answer: { status: 404 } })
    expect(await post()).toMatchObject({ status: 404, replayed: 'true' })
  })
})
