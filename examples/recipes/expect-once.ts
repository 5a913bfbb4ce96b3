// Tests of payouts-app.ts, for Vitest. `expectOnce` only throws, so jest and node:test run them as well.
import { MemoryStore } from 'once-per-key/memory'
import { expectOnce } from 'once-per-key/testing'
import { test } from 'vitest'
import { payoutsApp } from './payouts-app.js'

/** A bank that knows its transfers by their keys, as real ones do, and that fails when it is told to. */
function testBank() {
  const transfers = new Map<string, { readonly id: string }>()
  let failing: 'before' | 'after' | undefined
  return {
    transfers,
    failNext(when: 'before' | 'after') {
      failing = when
    },
    async transfer(_amount: number, key = crypto.randomUUID() as string) {
      const when = failing
      failing = undefined
      if (when === 'before') throw new Error('The bank is closed')
      const transfer = transfers.get(key) ?? { id: `tr_${transfers.size + 1}` }
      transfers.set(key, transfer)
      if (when === 'after') throw new Error('The connection to the bank was lost')
      return transfer
    },
  }
}

test('a payout is paid once, whatever its client does', async () => {
  const bank = testBank()
  const { app } = payoutsApp({ store: new MemoryStore(), bank })
  const request = { path: '/payouts', headers: { Authorization: 'Bearer demo_acme' }, body: { amount: 100 } }
  await expectOnce(app, request, { effects: () => bank.transfers.size, fail: (when) => bank.failNext(when) })
})
