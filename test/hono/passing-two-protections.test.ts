import { Hono } from 'hono'
import * as fetchBinding from 'once-per-key/fetch'
import { idempotency, singleTenant } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

// Each request that met two protections was misuse, also one that the first passes: without a key, by its method, or by `skip`.

const CASES = [
  { what: 'without a key', init: { method: 'POST' }, skip: false, replays: false },
  { what: 'of a method that is not covered', init: { method: 'GET', headers: key('k') }, skip: false, replays: false },
  { what: 'that the outer one skips', init: { method: 'POST', headers: key('k') }, skip: true, replays: true },
]

test.each(CASES)('in Hono, a request $what passes', async ({ init, skip, replays }) => {
  const app = new Hono()
  app.use(idempotency({ store: new MemoryStore(), scope: singleTenant, skip: () => skip }))
  app.all('/payouts', idempotency({ store: new MemoryStore(), scope: singleTenant }), (c) => c.text('paid'))
  const post = async () => seen(await app.request('/payouts', init))
  expect([await post(), await post()]).toEqual([
    [200, 'paid', false],
    [200, 'paid', replays],
  ])
})

test.each(CASES)('in Fetch, a request $what passes', async ({ init, skip, replays }) => {
  const outer = fetchBinding.idempotency({ store: new MemoryStore(), scope: singleTenant, skip: () => skip })
  const inner = fetchBinding.idempotency({ store: new MemoryStore(), scope: singleTenant })
  const handle = outer((request) => inner.handle(request, () => new Response('paid')))
  const post = async () => seen(await handle(new Request('https://api.example/payouts', init)))
  expect([await post(), await post()]).toEqual([
    [200, 'paid', false],
    [200, 'paid', replays],
  ])
})

test('a request that the outer one runs is misuse in the inner one, whatever its store', async () => {
  const outer = fetchBinding.idempotency({ store: new MemoryStore(), scope: singleTenant })
  const inner = fetchBinding.idempotency({ store: new MemoryStore(), scope: singleTenant })
  const handle = outer((request) => inner.handle(request, () => new Response('paid')))
  const request = new Request('https://api.example/payouts', { method: 'POST', headers: key('k') })
  await expect(handle(request)).rejects.toMatchObject({ code: 'mounted_twice' })
})

function key(value: string): Record<string, string> {
  return { 'Idempotency-Key': value }
}

async function seen(response: Response) {
  return [response.status, await response.text(), response.headers.get('Idempotent-Replayed') === 'true']
}
