import type { Request } from 'express'
import { expect, test } from 'vitest'
import { orderOf, payoutWork } from './payout.js'

test.each([200, 2_048, 16_384, 131_072, 1_048_576])('an order of %i bytes is as long as that', (bytes) => {
  expect(orderOf(bytes)).toHaveLength(bytes)
  expect(() => JSON.parse(orderOf(bytes))).not.toThrow()
})

test.each([150, 1_024, 1_048_576])('an answer of %i bytes is as long as that, and each is another', async (bytes) => {
  let runs = 0
  const work = payoutWork(bytes, () => runs++)
  const request = { headers: {}, body: JSON.parse(orderOf(200)) } as Request
  const [first, second] = [await work(request), await work(request)]
  expect(JSON.stringify(first.body)).toHaveLength(bytes)
  expect(second.body).not.toEqual(first.body)
  expect(runs).toBe(2)
})
