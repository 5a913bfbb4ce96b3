import { Hono } from 'hono'
import { idempotency, singleTenant } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

test.each([
  { how: 'into the headers of the request', put: (request: Request) => headersSet(request) },
  {
    how: 'with a request of its own',
    put: (request: Request) => new Request(request, { headers: { 'Idempotency-Key': 'order-1' } }),
  },
])('a key that earlier middleware of Hono has put $how counts', async ({ put }) => {
  const app = new Hono()
  app.use(async (c, next) => {
    c.req.raw = put(c.req.raw)
    await next()
  })
  app.post('/payouts', idempotency({ store: new MemoryStore(), scope: singleTenant }), (c) =>
    c.json(c.var.idempotency?.key),
  )
  const pay = async () => {
    const response = await app.request('/payouts', { method: 'POST', body: 'to: Ann' })
    return [response.status, await response.json(), response.headers.get('Idempotent-Replayed')]
  }
  expect([await pay(), await pay()]).toEqual([
    [200, 'order-1', null],
    [200, 'order-1', 'true'],
  ])
})

function headersSet(request: Request): Request {
  request.headers.set('Idempotency-Key', 'order-1')
  return request
}
