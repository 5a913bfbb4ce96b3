import type { Store } from 'once-per-key/core'
import { describe, expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { fakeClock } from '../support/fake-clock.js'
import { gate } from '../support/gate.js'
import { mapStore } from '../support/map-store.js'
import { request } from '../support/raw-client.js'
import { type Serving, serve } from '../support/serve.js'

const LEASE_MS = 30_000
const NAME = { scope: 'acme', key: 'order-1' }
const UNKNOWN = { state: 'in-flight', attempt: 1, uncertain: false, leaseRemainingMs: 0 }

describe.each(BINDINGS)(
  '$name: a request whose owner stalled is refused until an operator has found out',
  (binding) => {
    /** Two processes, as it were: the first stalls with a payment in its hands, the second refuses to repeat it. */
    async function stalled() {
      const clock = fakeClock()
      const store: Store = mapStore(clock.now)
      const { opened, open } = gate()
      const owner = await serve(
        binding,
        async (_req, res) => {
          await opened
          res.statusCode = 201
          res.end('paid too late')
        },
        { options: { store } },
      )
      const heir = await serve(
        binding,
        (req, res) => {
          res.statusCode = 201
          res.end(`paid after ${req.idempotency.previousOutcome}`)
        },
        { options: { store, unknownOutcome: 'refuse' } },
      )
      const late = pay(owner)
      await owner.seen('claimed')
      clock.advance(LEASE_MS)
      const refused = await pay(heir)
      expect([refused.status, refused.json()]).toEqual([409, expect.objectContaining({ code: 'outcome_unknown' })])
      expect(await heir.once.inspect(NAME)).toMatchObject(UNKNOWN)
      return { heir, late, wake: open }
    }

    function pay({ port }: Serving) {
      return request(port, { key: NAME.key, body: { amount: 100 } })
    }

    test('it had its effect: every retry is given the answer, and the late owner’s client too', async () => {
      const { heir, late, wake } = await stalled()
      const completed = { status: 201, body: { id: 'po_1' }, headers: { Location: '/payouts/po_1' } }
      expect(await heir.once.resolve({ ...NAME, attempt: 1 }, { completed })).toEqual({ ok: true })
      const retry = await pay(heir)
      wake()
      for (const reply of [retry, await late]) {
        expect([reply.status, reply.json()]).toEqual([201, { id: 'po_1' }])
        expect(reply.header('Content-Type')).toBe('application/json; charset=utf-8')
        expect(reply.header('Location')).toBe('/payouts/po_1')
        expect(reply.header('Idempotent-Replayed')).toBe('true')
      }
      expect(heir.runs()).toBe(0)
    })

    test('it had none: the next request runs, and the late owner’s client is sent no success', async () => {
      const { heir, late, wake } = await stalled()
      expect(await heir.once.resolve({ ...NAME, attempt: 1 }, 'failed')).toEqual({ ok: true })
      wake()
      expect([(await late).status, (await late).json()]).toEqual([409, expect.objectContaining({ code: 'in_flight' })])
      const run = await pay(heir)
      expect([run.status, run.body.toString()]).toEqual([201, 'paid after failed'])
      expect((await pay(heir)).header('Idempotent-Replayed')).toBe('true')
      expect(heir.runs()).toBe(1)
    })

    test('its answer is not known: it is never run again, and retries are told so', async () => {
      const { heir, late, wake } = await stalled()
      await heir.once.resolve({ ...NAME, attempt: 1 }, 'completed')
      const retry = await pay(heir)
      wake()
      for (const reply of [retry, await late]) {
        expect([reply.status, reply.json()]).toEqual([409, expect.objectContaining({ code: 'answer_not_kept' })])
      }
      expect(heir.runs()).toBe(0)
    })
  },
)
