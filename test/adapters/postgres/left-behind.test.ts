import type { PoolClient } from 'pg'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { type Gate, gate } from '../../support/gate.js'
import { inTime } from '../../support/in-time.js'
import { IN_STATEMENT } from '../../support/postgres-statements.js'
import { transactionByHand } from '../../support/transaction-by-hand.js'
import { BINDINGS, type Handler } from './on-bindings.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { pool, query, url } = await openStore()
const application = openPool(url)
await query('CREATE TABLE effects (id text)')

type Name = keyof typeof IN_STATEMENT
const NAMES = Object.keys(IN_STATEMENT) as Name[]
/** What the store has sent inside transactions. */
let sent: (Name | undefined)[]
/** Ends the transaction that is open, as a lost connection or a time limit would, though its work still runs. */
let limit: Gate
beforeEach(async () => {
  await query('TRUNCATE once_per_key.records, effects')
  sent = []
  limit = gate()
})

/** A client that does not wait for the work when it rejects; its connection goes back to the pool. */
const store = storeOn({
  pool,
  transactions: {
    run: (tx: PoolClient, { text, values }) => {
      sent.push(NAMES.find((name) => text.includes(IN_STATEMENT[name])))
      return tx.query(text, [...values])
    },
    async transaction(work) {
      const hasPassed = limit.opened.then(() => Promise.reject(new Error('the limit has passed')))
      await transactionByHand(await application.connect(), (tx) => Promise.race([work(tx), hasPassed]))
    },
  },
})

const SETTINGS = { leaseMs: 4_000, maxRunMs: 60_000, storeTimeoutMs: 1_000 }
const insert = (tx: PoolClient, id: string) => tx.query('INSERT INTO effects VALUES ($1)', [id])
const effects = async () => (await query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id)
const records = () => query('SELECT state, uncertain = 1 AS uncertain FROM once_per_key.records')

/** Work that is left behind: it has written, and answers as soon as it may. */
function workLeftBehind() {
  const mayAnswer = gate()
  const hasAnswered = gate()
  return {
    mayAnswer,
    hasAnswered,
    /** For a transaction of the handler's. */
    of: (answer: Parameters<Handler>[1]) => async (tx: PoolClient) => {
      await insert(tx, 'lost')
      limit.open()
      await mayAnswer.opened
      try {
        return answer(201, 'lost')
      } finally {
        hasAnswered.open() // A framework may throw, because an answer was sent.
      }
    },
  }
}

type LeftBehind = ReturnType<typeof workLeftBehind>

/** The next attempt's handler: nothing passes its limit. */
const pays: Handler = (context, answer) => {
  limit = gate()
  return store.transaction(context, async (tx) => {
    await insert(tx, 'paid')
    return answer(201, 'paid')
  })
}

/** Opens a second transaction at once; its work ends after that of the first one. */
function triesAgain(left: LeftBehind): Handler {
  return async (context, answer) => {
    await expect(store.transaction(context, left.of(answer))).rejects.toThrow('the limit has passed')
    limit = gate()
    setImmediate(left.mayAnswer.open)
    return store.transaction(context, async (tx) => {
      await left.hasAnswered.opened
      await insert(tx, 'paid')
      return answer(201, 'paid')
    })
  }
}

/** Fails, and ignores the answer of the work that it has left behind. */
function ignores(left: LeftBehind): Handler {
  return async (context, answer) => {
    await store.transaction(context, left.of(answer)).catch(() => {})
    left.mayAnswer.open()
    await left.hasAnswered.opened
    throw new Error('nothing was paid')
  }
}

describe.each(BINDINGS)('with %s, work whose client has rejected its transaction', (_name, serve) => {
  test('answers nobody: the failure is sent at once, and the next attempt runs', async () => {
    const left = workLeftBehind()
    const { send } = await serve(store, SETTINGS, async (context, answer) => {
      if (context.attempt === 1) return store.transaction(context, left.of(answer))
      return pays(context, answer)
    })
    expect(await inTime(send(), 10_000)).toMatchObject({ status: 500, id: null })
    left.mayAnswer.open()
    await left.hasAnswered.opened
    await new Promise(setImmediate)
    expect(await records()).toEqual([{ state: 'failed', uncertain: true }])
    expect(sent).toEqual(['mark'])
    expect(await send()).toEqual({ status: 201, id: 'paid' })
    expect(await send()).toEqual({ status: 201, id: 'paid' })
    expect(await effects()).toEqual(['paid'])
  })

  test('gives no answer to the transaction that follows: that waits until the work has settled', async () => {
    const left = workLeftBehind()
    const { send } = await serve(store, SETTINGS, triesAgain(left))
    expect(await inTime(send(), 10_000)).toEqual({ status: 201, id: 'paid' })
    expect(await send()).toEqual({ status: 201, id: 'paid' })
    expect(await effects()).toEqual(['paid'])
    expect(sent).toEqual(['mark', 'mark', 'completion'])
  })

  test('whose answer the handler does not wait for is never stored as a success', async () => {
    const left = workLeftBehind()
    const { send, idle } = await serve(store, SETTINGS, ignores(left))
    const { status, id } = await inTime(send(), 10_000)
    await idle()
    expect([status >= 500, id]).toEqual([true, null])
    expect(await records()).toEqual([{ state: 'failed', uncertain: true }])
    expect(await effects()).toEqual([])
  })
})

describe.each(['transaction', 'step'] as const)('after a `%s` of the store whose work was left behind', (kind) => {
  test('a step of the handler is done: nothing is open', async () => {
    const [, serve] = BINDINGS[0] as (typeof BINDINGS)[number]
    const left = workLeftBehind()
    const { send } = await serve(store, SETTINGS, async (context, answer) => {
      const work = left.of(answer)
      const inside =
        kind === 'step' ? store.step(context, 'write', (tx) => work(tx) as never) : store.transaction(context, work)
      await expect(inside).rejects.toThrow('the limit has passed')
      const noted = await context.step('note', () => 'done')
      left.mayAnswer.open()
      await left.hasAnswered.opened
      throw new Error(noted)
    })
    await inTime(send(), 10_000)
    const [{ steps }] = (await query('SELECT steps FROM once_per_key.records')) as [{ steps: Buffer }]
    expect(JSON.parse(`${steps}`)).toMatchObject({ steps: [['note', 'done', expect.any(Number), expect.any(String)]] })
  })
})

describe.each(BINDINGS)('with %s and all effects in the transaction, such work', (_name, serve) => {
  const terms = { ...SETTINGS, effects: 'in-transaction' } as const

  test('answers nobody, and leaves nothing: the next attempt is the first', async () => {
    const left = workLeftBehind()
    let runs = 0
    const { send, idle } = await serve(store, terms, async (context, answer) => {
      if (++runs === 1) return store.transaction(context, left.of(answer))
      expect([context.attempt, context.previousOutcome]).toEqual([1, 'none'])
      return pays(context, answer)
    })
    expect(await inTime(send(), 10_000)).toMatchObject({ status: 500, id: null })
    left.mayAnswer.open()
    await left.hasAnswered.opened
    await idle()
    expect(await records()).toEqual([])
    expect(await send()).toEqual({ status: 201, id: 'paid' })
    expect(await send()).toEqual({ status: 201, id: 'paid' })
    expect(await effects()).toEqual(['paid'])
  })

  test('gives no answer to the transaction that follows', async () => {
    const left = workLeftBehind()
    const { send } = await serve(store, terms, triesAgain(left))
    expect(await inTime(send(), 10_000)).toEqual({ status: 201, id: 'paid' })
    expect(await send()).toEqual({ status: 201, id: 'paid' })
    expect(await effects()).toEqual(['paid'])
  })

  test('whose answer the handler does not wait for is never stored', async () => {
    const left = workLeftBehind()
    const { send, idle } = await serve(store, terms, ignores(left))
    const { status, id } = await inTime(send(), 10_000)
    await idle()
    expect([status >= 500, id]).toEqual([true, null])
    expect(await records()).not.toContainEqual(expect.objectContaining({ state: 'completed' }))
    expect(await effects()).toEqual([])
  })
})

test.each(BINDINGS.filter(([name]) => /Express|Fetch|function/.test(name)))(
  'work that never settles is waited for until maxRunMs, and the client is answered then, with %s',
  async (_name, serve) => {
    const { send, idle } = await serve(store, { ...SETTINGS, maxRunMs: 4_000 }, async (context, answer) => {
      const never = workLeftBehind()
      await store.transaction(context, never.of(answer)).catch(() => {})
      limit = gate()
      return store.transaction(context, () => answer(201, 'never'))
    })
    expect(await inTime(send(), 10_000)).toMatchObject({ id: null })
    await inTime(idle(), 5_000)
    expect(await effects()).toEqual([])
    expect(await records()).toEqual([{ state: 'failed', uncertain: true }])
  },
)

describe('a handler’s own answer', () => {
  test.each(BINDINGS.filter(([name]) => /Fetch|Hono|function|webhook/.test(name)))(
    'is stored as soon as the work has settled, with %s',
    async (_name, serve) => {
      const left = workLeftBehind()
      const { send } = await serve(store, SETTINGS, async (context, answer) => {
        await store.transaction(context, left.of(answer)).catch(() => {})
        setImmediate(left.mayAnswer.open)
        return answer(201, 'later')
      })
      expect(await inTime(send(), 10_000)).toEqual({ status: 201, id: 'later' })
      expect(await records()).toEqual([{ state: 'completed', uncertain: false }])
    },
  )
})

test('a client that calls the work again waits for the call that still runs', async () => {
  const [mayAnswer, hasAnswered] = [gate(), gate()]
  let calls = 0
  const again = storeOn({
    pool,
    transactions: {
      run: (tx: PoolClient, { text, values }) => tx.query(text, [...values]),
      async transaction(work) {
        const [first, second] = [await application.connect(), await application.connect()]
        try {
          await first.query('BEGIN')
          void work(first).catch(() => {})
          await limit.opened
          await first.query('ROLLBACK')
          await second.query('BEGIN')
          setImmediate(mayAnswer.open)
          await work(second)
          await second.query('COMMIT')
        } finally {
          first.release()
          second.release()
        }
      },
    },
  })
  const express = BINDINGS[0] as (typeof BINDINGS)[number]
  const { send } = await express[1](again, SETTINGS, (context, answer) =>
    again.transaction(context, async (tx) => {
      if (++calls === 2) {
        expect(await inTime(hasAnswered.opened, 1_000)).toBeUndefined()
        await insert(tx, 'second')
        return answer(201, 'second')
      }
      await insert(tx, 'first')
      limit.open()
      await mayAnswer.opened
      answer(201, 'first')
      hasAnswered.open()
    }),
  )
  expect(await inTime(send(), 10_000)).toEqual({ status: 201, id: 'second' })
  expect(await effects()).toEqual(['second'])
})

test.each(['Express', 'a function'])('a step whose work goes on answers nobody, with %s', async (name) => {
  const serve = BINDINGS.find(([each]) => each === name)?.[1] as (typeof BINDINGS)[number][1]
  const left = workLeftBehind()
  const { send, idle } = await serve(store, SETTINGS, async (context, answer) => {
    await store.step(context, 'reserve', async (tx) => void (await left.of(answer)(tx))).catch(() => {})
    left.mayAnswer.open()
    await left.hasAnswered.opened
    throw new Error('nothing was reserved')
  })
  expect(await inTime(send(), 10_000)).toMatchObject({ id: null })
  await idle()
  expect(await records()).toMatchObject([{ state: 'failed' }])
  expect(await effects()).toEqual([])
})
