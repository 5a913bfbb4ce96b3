const { expectOnce } = require('once-per-key/testing')
const { payouts } = require('./payouts.cjs')

test.each([true, false])('a payout is paid once: protected %s', async (isProtected) => {
  const { app, effects } = payouts({ isProtected })
  await expectOnce(app, { path: '/payouts', body: { amount: 100 } }, { effects })
})
