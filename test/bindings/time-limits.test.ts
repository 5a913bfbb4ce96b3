import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
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

  test.each(['while its record is stored', 'when it was sent'])(
    'what the handler answers after a time limit has answered is ignored: %s',
    async (when) => {
      const [paying, storing, stored, sent] = [gate(), gate(), gate(), gate()]
      const late = gate<unknown>()
      const inner = new MemoryStore()
      const store: Store = {
        begin: (key, claim) => inner.begin(key, claim),
        renew: (key, own) => inner.renew(key, own),
        complete: (key, own) => inner.complete(key, own),
        async release(key, own) {
          storing.open()
          await stored.opened
          return inner.release(key, own)
        },
      }
      const limit: Step = (_req, res, next) => {
        void paying.opened.then(() => {
          res.statusCode = 503
          res.setHeader('Content-Type', 'text/plain')
          res.end('too late')
        })
        next()
      }
      const handler: Step = async (_req, res) => {
        paying.open()
        await (when === 'when it was sent' ? sent : storing).opened
        try {
          res.statusCode = 201
          if (binding.isExpress) res.cookie('paid', 'yes').json({ paid: 100 })
          else {
            res.setHeader('X-Paid', '100')
            res.appendHeader('X-Paid', '200')
            res.removeHeader('Content-Type')
            res.writeHead(201, { 'X-Paid': '300' }).end('paid')
          }
          late.open('ignored')
        } catch (error) {
          late.open(error)
        }
      }
      const serving = await serve(binding, handler, { before: [limit], options: { store } })
      const reply = request(serving.port, { key: 'k' })
      await storing.opened
      if (when === 'when it was sent') stored.open()
      else {
        expect(await late.opened).toBe('ignored')
        stored.open()
      }
      const { status, body, header } = await reply
      expect([status, String(body), header('Content-Type'), header('X-Paid')]).toEqual([
        ...[503, 'too late', 'text/plain', undefined],
      ])
      expect(header('Set-Cookie')).toBeUndefined()
      sent.open()
      expect(await late.opened).toBe('ignored')
    },
  )
})
