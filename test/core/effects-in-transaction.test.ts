import { idempotency, singleTenant } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { PostgresStore } from 'once-per-key/postgres'
import { runner } from 'once-per-key/run'
import { sealed } from 'once-per-key/sealed'
import { webhookReceiver } from 'once-per-key/webhooks'
import { expect, test } from 'vitest'

const query = async () => ({ rows: [] })
const transactions = { transaction: async () => {}, run: query }
const able = new PostgresStore({ query, transactions, sweeps: false })
const unable = [new MemoryStore(), new PostgresStore({ query, sweeps: false })] as const
const effects = 'in-transaction' as const

const MAKERS: readonly (readonly [string, (store: Store, more?: object) => unknown])[] = [
  ['idempotency', (store, more) => idempotency({ store, scope: singleTenant, effects, ...more })],
  ['runner', (store, more) => runner({ store, name: 'payouts', effects, ...more })],
  ['webhookReceiver', (store) => webhookReceiver({ store, source: 's', verify: false, on: {}, effects })],
]

test.each(MAKERS)('%s refuses a store whose transactions take no keys, and names those that do', (_name, make) => {
  for (const store of unable) {
    expect(() => make(store)).toThrowError(
      expect.objectContaining({
        code: 'options_invalid',
        message: expect.stringMatching(/PostgresStore or MySqlStore with the option `transactions`, or SqliteStore/),
      }),
    )
  }
  make(able)
  make(sealed(able, { keys: [Buffer.alloc(32, 7).toString('base64')] }))
})

test.each(MAKERS.slice(0, 2))('%s refuses to run unprotected', (_name, make) => {
  expect(() => make(able, { storeFailure: 'runUnprotected' })).toThrowError(
    expect.objectContaining({ code: 'options_invalid', message: expect.stringContaining('contradicts') }),
  )
})
