import test from 'node:test'
import { expectOnce } from 'once-per-key/testing'
import { payouts } from './payouts.cjs'

for (const isProtected of [true, false]) {
  test(`a payout is paid once: protected ${isProtected}`, async () => {
    const { app, effects } = payouts({ isProtected })
    await expectOnce(app, { path: '/payouts', body: { amount: 100 } }, { effects })
  })
}
