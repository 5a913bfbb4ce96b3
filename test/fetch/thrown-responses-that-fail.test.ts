import { idempotency, singleTenant } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../support/bindings.js'

// A thrown Response whose body could not be read left its run in flight: until maxRunMs each retry was refused, and idle() waited.

const FAULTY: Readonly<Record<string, () => Response>> = {
  'breaks off': () => new Response(new ReadableStream({ pull: (body) => body.error(new Error('upstream broke')) })),
  'is locked': () => {
    const response = new Response('paid')
    response.body?.getReader()
    return response
  },
  'gives numbers': () => new Response(ReadableStream.from([1]) as ReadableStream<never>),
}

test.each(Object.entries(FAULTY))(
  'a thrown Response whose body %s has left the outcome unknown',
  async (_how, faulty) => {
    const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
    const told: unknown[] = []
    const handle = once((_request, context) => {
      told.push(context?.previousOutcome)
      if (told.length === 1) throw faulty()
      return new Response('paid')
    })
    await expect(handle(payout())).rejects.toBeInstanceOf(Error)
    await once.idle()
    expect((await handle(payout())).status).toBe(200)
    expect(told).toEqual(['none', 'unknown'])
  },
)

test('a thrown Response of another service is no refusal, and one of the handler’s own is', async () => {
  const upstream = await listen((_req, res) => res.writeHead(401).end())
  onTestFinished(upstream.close)
  for (const [thrown, outcome] of [
    [() => fetch(`http://127.0.0.1:${upstream.port}`), 'unknown'],
    [() => new Response(null, { status: 401 }), 'failed'],
  ] as const) {
    const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
    const told: unknown[] = []
    const handle = once(async (_request, context) => {
      told.push(context?.previousOutcome)
      if (told.length === 1) throw await thrown()
      return new Response('paid')
    })
    await expect(handle(payout())).rejects.toMatchObject({ status: 401 })
    await handle(payout())
    expect(told).toEqual(['none', outcome])
  }
})

function payout(): Request {
  return new Request('https://api.example/payouts', { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
}
