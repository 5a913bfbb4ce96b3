import { runner } from 'once-per-key/run'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { openPool, openStore, storeOn } from './open-store.js'

const { pool, query, url } = await openStore()
await query('CREATE TABLE effects (id text)')

const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length

describe.each(['assumed', 'in-transaction'] as const)('effects: %s', (effects) => {
  const pay = async (options: object, key: string) => {
    const transactions = openPool(url, { max: 1, ...options })
    const store = storeOn({ pool, transactions })
    const once = runner({ store, name: 'payouts', effects })
    const paid = await once({ scope: effects, key, input: {} }, (context) =>
      store.transaction(context, async (tx) => {
        await tx.query('INSERT INTO effects VALUES ($1)', [`${effects} ${key}`])
        return key
      }),
    )
    await once.idle()
    await transactions.end()
    return paid
  }
  const effectsOf = (key: string) => query(`SELECT id FROM effects WHERE id = '${effects} ${key}'`)

  test('a pool that pipelines by itself gets statements one by one', async () => {
    expect(await pay({ pipeline: true }, 'piped')).toBe('piped')
    expect(await effectsOf('piped')).toHaveLength(1)
  })

  test('the time limit of a query that has ended keeps no process alive', async () => {
    await pay({}, 'first')
    const before = timers()
    expect(await pay({ query_timeout: 60_000 }, 'limited')).toBe('limited')
    expect(timers()).toBeLessThanOrEqual(before)
  })
})

test.each([
  ['in one round trip', {}, 1],
  ['one by one where the pool pipelines by itself', { pipeline: true }, 4],
])(
  'at a default of SERIALIZABLE, a command is a transaction at READ COMMITTED, sent %s',
  async (_how, options, trips) => {
    const isolated = openPool(url, { max: 1, options: '-c default_transaction_isolation=serializable', ...options })
    onTestFinished(() => isolated.end())
    const store = storeOn({ pool: isolated })
    const key = `sent in ${trips}`
    await store.begin(key, claimOf('t1')) // Its reply says what the sessions' default is.
    const connection = await isolated.connect()
    const query = vi.spyOn(connection, 'query')
    connection.release()

    expect(await store.begin(key, claimOf('t2'))).toMatchObject({ acquired: false })
    expect(query).toHaveBeenCalledTimes(trips)
    const sent = query.mock.calls.map(([each]) => (each as unknown as { text?: string }).text ?? each)
    expect(sent.join('\n')).toMatch(/^BEGIN ISOLATION LEVEL READ COMMITTED\b.*COMMIT$/s)

    const holder = await pool.connect()
    await holder.query('BEGIN; SELECT FROM once_per_key.records FOR UPDATE')
    const complete = async () => store.complete(key, { ...ownOf('t1'), answer: ANSWER })
    await expect(complete()).rejects.toMatchObject({ code: 'record_locked' })
    await holder.query('ROLLBACK')
    holder.release()
    expect(await complete()).toEqual({ ok: true }) // Over the same connection, on which nothing was left open.
  },
)
