import type { PoolClient } from 'pg'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { gate } from '../../support/gate.js'
import { inTime } from '../../support/in-time.js'
import { transactionByHand } from '../../support/transaction-by-hand.js'
import { BINDINGS } from './on-bindings.js'
import { openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { pool, query } = await openStore()
await query('CREATE TABLE effects (id text)')
/** What happens to each COMMIT, in order; those that follow succeed. */
let commits: (() => Promise<'refused'>)[] = []
beforeEach(async () => {
  commits = []
  await query('TRUNCATE once_per_key.records, effects')
})

/** An opener that tries again once where its COMMIT is refused, as one does for serialization failures. */
const store = storeOn({
  pool,
  transactions: {
    run: (tx: PoolClient, { text, values }) => tx.query(text, [...values]),
    async transaction(work, options: { readonly retries?: boolean } | undefined) {
      const once = async () =>
        transactionByHand(await pool.connect(), async (tx) => {
          await work(tx)
          if ((await commits.shift()?.()) === 'refused') throw new Error('The COMMIT was refused.')
        })
      await (options?.retries === true ? once().catch(once) : once())
    },
  },
})

/** By then the framework has answered what the handler threw. */
async function answered(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
}

const SETTINGS = { leaseMs: 4_000, maxRunMs: 60_000, storeTimeoutMs: 1_000 }
const MODES = [['with a claim', {}] as const, ['without a claim', { effects: 'in-transaction' }] as const]

describe.each(MODES)('%s', (_mode, effects) => {
  const records = () => query('SELECT state FROM once_per_key.records')
  const none = 'effects' in effects ? [] : [{ state: 'failed' }]

  describe.each(BINDINGS)('with %s', (_name, serve) => {
    test.each([false, true])(
      'a time limit of the handler passes before its COMMIT is refused: the client is answered (tried again: %s)',
      async (retries) => {
        const late = gate()
        const { send, idle } = await serve(store, { ...SETTINGS, ...effects }, async (context, answer) => {
          const committing = gate()
          commits = [
            async () => {
              committing.open()
              await late.opened
              return 'refused'
            },
          ]
          const work = async (tx: PoolClient) => {
            await tx.query("INSERT INTO effects VALUES ('paid')")
            return answer(201, 'paid')
          }
          const paying = store.transaction(context, work, { retries })
          const limit = committing.opened.then(() => {
            void answered().then(late.open)
            throw new Error('too late')
          })
          return Promise.race([paying, limit])
        })
        const { status } = await inTime(send(), 10_000)
        expect(status).toBeGreaterThanOrEqual(500)
        await inTime(idle(), 10_000)
        expect(await query('SELECT id FROM effects')).toEqual([])
        expect(await records()).toEqual(none)
      },
    )

    // Express and node:http cannot tell that a handler has returned: there its client waits for `maxRunMs`.
    test('a success is answered while its transaction is open, which is rolled back: the client is told to retry', async () => {
      const settings = { leaseMs: 1_000, maxRunMs: 1_500, storeTimeoutMs: 250, ...effects }
      const { send, idle } = await serve(store, settings, async (context, answer) => {
        const begun = gate()
        const late = gate()
        const work = async (tx: PoolClient) => {
          await tx.query("INSERT INTO effects VALUES ('paid')")
          begun.open()
          await late.opened
          throw new Error('The work has failed.')
        }
        store.transaction(context, work).catch(() => {})
        await begun.opened
        void answered().then(late.open)
        return answer(201, 'paid')
      })
      const { status } = await inTime(send(), 10_000)
      expect(status).toBeGreaterThanOrEqual(500)
      await inTime(idle(), 10_000)
      expect(await query('SELECT id FROM effects')).toEqual([])
    })
  })
})
