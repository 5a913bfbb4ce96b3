import { Hono } from 'hono'
import { type IdempotencyContext, type IdempotencyOptions, singleTenant } from 'once-per-key'
import { idempotency as onFetch, reply } from 'once-per-key/fetch'
import { idempotency as onHono, reply as replyOfHono } from 'once-per-key/hono'
import { runner } from 'once-per-key/run'
import { describe, expect, test, vi } from 'vitest'
import { gate } from '../../support/gate.js'
import { heardWarnings } from '../../support/warnings.js'
import { DRIVER_NAMES, type DriverName } from './drivers.js'
import { insert, served } from './served.js'

const MODE: Partial<IdempotencyOptions> = { effects: 'in-transaction' }

describe.each(DRIVER_NAMES)('one transaction and no claim, on %s,', (driver) => {
  test('commits the effects and a completed record, of which nothing is there before', async () => {
    const { store, serve, post, query, effects, types } = await served(driver)
    const seen: unknown[] = []
    await serve(async (res, context) => {
      seen.push(query('SELECT state FROM once_per_key_records').length)
      await store.transaction(context, (tx) => {
        insert(tx)
        res.status(201).json({ id: 'e1' })
      })
    }, MODE)
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: null })
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: 'true' })
    expect(seen).toEqual([0])
    expect(effects()).toEqual(['e1'])
    expect(types()).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('of attempts that race, one has its effect, and all get its answer', async () => {
    const { store, serve, post, effects, errors } = await served(driver)
    const looked = gate()
    let runs = 0
    await serve(async (res, context) => {
      runs += 1
      if (runs === 3) looked.open()
      await looked.opened
      await store.transaction(context, (tx) => {
        insert(tx)
        res.status(201).json({ id: 'e1' })
      })
    }, MODE)
    const told = await Promise.all([post(), post(), post()])
    expect(told.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(told.filter(({ replayed }) => replayed === 'true')).toHaveLength(2)
    expect(errors).toMatchObject([{ code: 'operation_taken' }, { code: 'operation_taken' }])
    expect(effects()).toEqual(['e1'])
  })

  test('a failure is sent and recorded nowhere, unless the first attempt succeeded meanwhile', async () => {
    const { store, serve, post, record } = await served(driver)
    const [looked, committed] = [gate(), gate()]
    let runs = 0
    await serve(async (res, context) => {
      runs += 1
      if (runs === 1) return res.status(402).json({ refused: true })
      if (runs === 3) {
        looked.open()
        await committed.opened
        return res.status(402).json({ refused: true })
      }
      await looked.opened
      return store.transaction(context, (tx) => {
        insert(tx)
        res.status(201).json({ id: 'e1' })
      })
    }, MODE)
    expect(await post()).toMatchObject({ status: 402 })
    expect(await record()).toBeNull()
    const both = [post(), post()]
    // Whichever has run first.
    expect(await Promise.race(both)).toMatchObject({ status: 201 })
    committed.open()
    expect(await Promise.all(both)).toContainEqual(
      expect.objectContaining({ status: 201, body: { id: 'e1' }, replayed: 'true' }),
    )
    for (const told of await Promise.all(both)) expect(told.status).toBe(201)
  })

  test('a success without a transaction is withheld, and its key is failed and uncertain', async () => {
    const { serve, post, record, events } = await served(driver)
    await serve(async (res) => res.status(201).json({}), MODE)
    expect(await post()).toMatchObject({ status: 500, body: { code: 'transaction_missing' } })
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true, attempt: 1 })
    expect(events).toMatchObject([{ type: 'failed', uncertain: true, because: 'no_transaction' }])
  })

  test('what the work has committed itself leaves the outcome unknown', async () => {
    const { store, serve, post, effects, errors, record, events } = await served(driver)
    const told: unknown[] = []
    await serve(async (res, context) => {
      told.push(context.previousOutcome)
      await store.transaction(context, (tx) => {
        if (told.length > 1) return void res.status(402).json({})
        insert(tx)
        tx.exec('COMMIT')
        res.status(201).json({ id: 'e1' })
      })
    }, MODE)
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ code: 'transaction_unmarked' }])
    expect(effects()).toEqual(['e1'])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true, attempt: 1 })
    expect(events).toMatchObject([{ type: 'claimed' }, { type: 'failed', uncertain: true, because: 'may_have_effect' }])
    await post()
    expect(told).toEqual(['none', 'unknown'])
  })

  test('a record that the leased way left as uncertain is followed', async () => {
    const { store, serve, post, record } = await served(driver)
    await serve(async (res) => res.status(500).json({}))
    await post()
    await serve(async (res, { attempt, previousOutcome, ...context }) => {
      void context
      return store
        .transaction({ attempt, previousOutcome, ...context } as never, () => {})
        .catch(() => res.status(400).json({ attempt, previousOutcome }))
    }, MODE)
    expect(await post()).toMatchObject({ status: 400, body: { attempt: 2, previousOutcome: 'unknown' } })
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true, attempt: 1 })
  })

  test.each<[string, (context: IdempotencyContext) => unknown]>([
    ['mayHaveEffect', (context) => context.mayHaveEffect()],
    ['context.step', (context) => context.step('charge', () => 1)],
  ])('%s is misuse', async (_name, misuse) => {
    const { serve, post, errors, record } = await served(driver)
    await serve(async (_res, context) => void (await misuse(context)), MODE)
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ code: 'effects_in_transaction' }])
    expect(await record()).toBeNull()
  })

  test('`completeIn` and `step` are misuse', async () => {
    const { store, database, serve, post, errors } = await served(driver)
    let runs = 0
    await serve(async (_res, context) => {
      runs += 1
      if (runs === 1) return store.completeIn(database, context, { status: 201 })
      return store.step(context, 'reserve', () => {})
    }, MODE)
    await post()
    await post()
    expect(errors).toMatchObject([{ code: 'effects_in_transaction' }, { code: 'effects_in_transaction' }])
  })

  test('behind Fetch and Hono the work returns `reply`, since a Response cannot be read at once', async () => {
    const { store, effects } = await served(driver)
    const once = onFetch({ store, scope: singleTenant, effects: 'in-transaction' })
    const hono = new Hono().post('/', onHono({ store, scope: singleTenant, effects: 'in-transaction' }), async (c) => {
      await store.transaction(c.get('idempotency'), (tx) => {
        insert(tx, 'hono')
        return replyOfHono(201, 'made', { 'X-Made': 'yes' })
      })
      return c.body(null)
    })
    const asked = (key: string) => new Request('http://test/', { method: 'POST', headers: { 'Idempotency-Key': key } })
    const byFetch = () =>
      once.handle(asked('fetch'), async (_request, context) => {
        await store.transaction(context, (tx) => {
          insert(tx, 'fetch')
          return reply(201, { id: 'fetch' }, { Location: '/payouts/fetch' })
        })
        return new Response()
      })
    for (const replayed of [null, 'true']) {
      const response = await byFetch()
      expect(response.status).toBe(201)
      expect(response.headers.get('location')).toBe('/payouts/fetch')
      expect(response.headers.get('content-type')).toBe('application/json')
      expect(response.headers.get('idempotent-replayed')).toBe(replayed)
      expect(await response.json()).toEqual({ id: 'fetch' })
      const other = await hono.fetch(asked('hono'))
      expect([other.status, other.headers.get('x-made'), await other.text()]).toEqual([201, 'yes', 'made'])
    }
    expect(effects()).toEqual(['fetch', 'hono'])
  })

  test('a `reply` that is too large to keep is sent, and completes without it', async () => {
    const { store, effects } = await served(driver)
    const once = onFetch({ store, scope: singleTenant, effects: 'in-transaction', maxAnswerBytes: 4 })
    const send = () =>
      once.handle(
        new Request('http://test/', { method: 'POST', headers: { 'Idempotency-Key': 'k' } }),
        async (_request, context) => {
          await store.transaction(context, (tx) => {
            insert(tx)
            return reply(201, 'large')
          })
          return new Response()
        },
      )
    const first = await send()
    expect([first.status, await first.text()]).toEqual([201, 'large'])
    expect(await (await send()).json()).toMatchObject({ status: 409, code: 'answer_not_kept' })
    expect(effects()).toEqual(['e1'])
  })

  test('a Response as the answer is misuse, and the message names `reply`', async () => {
    const { store, effects } = await served(driver)
    const once = onFetch({ store, scope: singleTenant, effects: 'in-transaction' })
    const request = new Request('http://test/', { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
    const told = once.handle(request, async (_request, context) =>
      store.transaction(context, (tx) => {
        insert(tx)
        return Response.json({})
      }),
    )
    await expect(told).rejects.toMatchObject({
      code: 'transaction_asynchronous',
      message: expect.stringMatching(/reply\(/),
    })
    expect(effects()).toEqual([])
  })

  test('a function has its result once, and what it throws is fenced', async () => {
    const { store, effects } = await served(driver)
    const once = runner({ store, name: 'payouts', effects: 'in-transaction' })
    const operation = { scope: 'acme', key: 'k', input: null }
    const looked = gate()
    const failing = once(operation, async () => {
      await looked.opened
      throw new Error('The balance is too low.')
    })
    const pay = () =>
      once(operation, (context) =>
        store.transaction(context, (tx) => {
          insert(tx)
          return { id: 'e1' }
        }),
      )
    expect(await pay()).toEqual({ id: 'e1' })
    looked.open()
    expect(await failing).toEqual({ id: 'e1' })
    expect(await pay()).toEqual({ id: 'e1' })
    expect(effects()).toEqual(['e1'])
    await expect(once({ ...operation, key: 'other' }, async () => 1)).rejects.toMatchObject({
      code: 'transaction_missing',
    })
  })
})

test.each([
  ['without', undefined],
  ['with', () => {}],
])('%s `onEvent`, successes without a transaction are told by one warning', async (_which, onEvent) => {
  const { store } = await served(DRIVER_NAMES[0] as DriverName)
  vi.resetModules()
  const fresh = await import('once-per-key/run')
  await printed() // What an earlier test has caused.
  const warnings = heardWarnings()
  const once = fresh.runner({ store, name: 'pay', effects: 'in-transaction', onEvent })
  for (const key of ['a', 'b']) {
    const run = once({ scope: 'acme', key, input: {} }, async () => 1)
    await expect(run).rejects.toMatchObject({ code: 'transaction_missing' })
  }
  await printed()
  expect(warnings.map(({ code }) => code)).toEqual(['ONCE_PER_KEY_TRANSACTION_MISSING'])
})

/** Node prints a warning later. */
function printed(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
