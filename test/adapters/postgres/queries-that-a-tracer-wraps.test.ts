import type { EventEmitter } from 'node:events'
import { runner } from 'once-per-key/run'
import { describe, expect, test } from 'vitest'
import { openPool, openStore, storeOn } from './open-store.js'

// A tracer waits for the end of whatever is given to `query` of a connection, by its `callback` or by its events. Ours had neither, so one
// called its `then`, and each transaction failed.

const { pool, query, url } = await openStore()
await query('CREATE TABLE effects (id text PRIMARY KEY)')

/** What a query object of `pg` has. */
interface Query extends EventEmitter {
  readonly text?: string
  readonly name?: string
  callback?: (error: unknown, ...results: unknown[]) => void
}

/** What a tracer does with a query that it sends, and how it hears of its end. */
type Trace = (sent: Query, send: (query: Query) => Query, hear: (end: string) => void) => Query

const byCallback: Trace = (sent, send, hear) => {
  const { callback } = sent
  if (callback === undefined) throw new Error('The query has no callback.')
  sent.callback = (error, ...results) => {
    hear(error ? 'error' : 'end')
    callback(error, ...results)
  }
  return send(sent)
}

const byEvents: Trace = (sent, send, hear) =>
  send(sent)
    .on('end', () => hear('end'))
    .on('error', () => hear('error'))

const withComments: Trace = (sent, send, hear) => {
  const isChanged = typeof sent.text === 'string' && sent.name === undefined
  return byCallback(isChanged ? ({ ...sent, text: `${sent.text} /* traced */` } as Query) : sent, send, hear)
}

const TRACES = {
  'wraps its callback': byCallback,
  'listens for its events': byEvents,
  'comments its text': withComments,
}

describe.each(['assumed', 'in-transaction'] as const)('effects: %s', (effects) => {
  const pay = async (trace: Trace, id: string, statement = 'SELECT') => {
    const ends: string[] = []
    const transactions = openPool(url, { max: 1 })
    transactions.on('connect', (connection) => {
      const send = connection.query.bind(connection) as (...args: unknown[]) => unknown
      const traced = (...args: unknown[]) =>
        typeof (args[0] as { submit?: unknown }).submit === 'function'
          ? trace(args[0] as Query, send as (query: Query) => Query, (end) => ends.push(end))
          : send(...args)
      Object.assign(connection, { query: traced })
    })
    const store = storeOn({ pool, transactions })
    const once = runner({ store, name: 'payouts', effects })
    const paid = once({ scope: effects, key: id, input: {} }, (context) =>
      store.transaction(context, async (tx) => {
        await tx.query('INSERT INTO effects VALUES ($1)', [`${effects} ${id}`])
        await tx.query(statement).catch(() => {})
        return 'paid'
      }),
    )
    const outcome = await paid.catch((error: unknown) => error)
    await once.idle()
    await transactions.end()
    return { outcome, ends }
  }

  test.each(Object.entries(TRACES))('a transaction commits where a tracer %s', async (name, trace) => {
    expect(await pay(trace, name)).toEqual({ outcome: 'paid', ends: ['end', 'end'] })
    expect(await query(`SELECT FROM effects WHERE id = '${effects} ${name}'`)).toHaveLength(1)
  })

  test.each([
    ['wraps its callback', byCallback],
    ['listens for its events', byEvents],
  ])('a tracer that %s hears of a query that fails', async (name, trace) => {
    // Whatever follows in the transaction fails, as does the completion.
    const { outcome, ends } = await pay(trace, `failing ${name}`, 'SELECT 1 / 0')
    expect(outcome).toMatchObject({ code: 'transaction_rolled_back' })
    expect(ends).toEqual(['end', 'error'])
  })

  test('a query that a tracer refuses to send fails, and nothing is committed', async () => {
    const refuse: Trace = (sent) => {
      sent.callback?.(new Error('blocked by a rule'))
      return sent
    }
    const { outcome } = await pay(refuse, 'refused')
    expect(outcome).toBeInstanceOf(Error)
    expect(await query(`SELECT FROM effects WHERE id = '${effects} refused'`)).toEqual([])
  })
})
