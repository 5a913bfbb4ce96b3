import express from 'express'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expectOnce } from 'once-per-key/testing'
import { expect, test } from 'vitest'

// A validator that refused the changed body was taken for the library: an application whose fingerprint leaves out the
// body passed.

/** An application that accepts the amount and nothing else, and whose `fingerprint` leaves out the body. */
function strict() {
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', fingerprint: () => 'any' })
  return express()
    .use(express.json(), (req, res, next) => {
      if (Object.keys(req.body).join() === 'payout') next()
      else res.status(422).json({ error: 'unknown member' })
    })
    .post('/payouts', once, (_req, res) => res.status(201).json({}))
}

const request = { path: '/payouts', body: { payout: { amount: 100 } } }

test('another body that the handler refuses under any key shows nothing', async () => {
  await expect(expectOnce(strict(), request)).rejects.toThrow(/^the other body was refused under a key of its own too/)
})

test('one that it accepts finds the fingerprint that leaves out the body', async () => {
  const options = { otherBody: { payout: { amount: 200 } } }
  await expect(expectOnce(strict(), request, options)).rejects.toThrow(
    /^another body under the same key got the answer/,
  )
})
