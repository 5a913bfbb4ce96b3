import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

describe.each(BINDINGS)('$name', (binding) => {
  test('a time limit that answers in the handler’s place is a failure; mayHaveEffect() keeps it from being certain', async () => {
    const paying = gate()
    const paid = gate()
    const ended = gate()
    const limit: Step = (req, res, next) => {
      void paying.opened.then(() => {
        if (req.idempotency.attempt > 1) return
        res.statusCode = 503
        res.end('too late')
      })
      next()
    }
    const handler: Step = async (req, res) => {
      const { attempt, previousOutcome } = req.idempotency
      if (attempt > 1) return res.end(previousOutcome)
      req.idempotency.mayHaveEffect()
      paying.open()
      await paid.opened
      res.end('paid')
      ended.open()
    }
    const serving = await serve(binding, handler, { behind: [limit] })

    const first = await request(serving.port, { key: 'k' })
    expect([first.status, String(first.body)]).toEqual([503, 'too late'])
    paid.open()
    await ended.opened
    expect(serving.events).toContainEqual(expect.objectContaining({ type: 'failed', uncertain: true }))
    expect(String((await request(serving.port, { key: 'k' })).body)).toBe('unknown')
  })
})
