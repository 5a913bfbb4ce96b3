import { runner } from 'once-per-key/run'
import { describe, expect, test } from 'vitest'
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
