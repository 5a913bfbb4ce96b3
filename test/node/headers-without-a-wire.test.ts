import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { type IdempotencyContext, type IdempotencyRequest, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

// Adapters that run an application without a socket of HTTP's, such as those of serverless platforms, fill `headers` and
// leave `rawHeaders` empty. The key was looked for on the wire alone: such requests passed without one, and were run again.
// Where there was no socket at all, the handler's end threw, and the key stayed in flight.

test('a key that only `headers` holds is a key', async () => {
  const req = Object.assign(new IncomingMessage(new Socket()), {
    method: 'POST',
    url: '/payouts',
    headers: { 'content-type': 'application/json', 'content-length': 15, 'idempotency-key': 'order-1001' },
    body: { amount: 5000 },
    idempotency: undefined as IdempotencyContext | undefined,
  })
  const once = idempotency<IdempotencyRequest>({ store: new MemoryStore(), scope: () => 'acme' })
  await new Promise((resolve) => once(req, new ServerResponse(req), resolve))
  expect(req.idempotency?.key).toBe('order-1001')
})

// One that an SDK makes anew for each try, beside the application's own, was a new key each time.
test.each([
  { how: 'a list', lines: ['order-1001', 'try-1'] },
  { how: 'one value', lines: 'order-1001, try-1' },
])('two keys that `headers` hold as $how are refused', async ({ lines }) => {
  const headers = { 'idempotency-key': lines as string }
  const req = Object.assign(new IncomingMessage(new Socket()), { method: 'POST', url: '/payouts', headers, body: {} })
  const events: object[] = []
  const onEvent = (event: object) => events.push(event)
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', onEvent })
  once(req, new ServerResponse(req), () => expect.unreachable('The handler runs.'))
  expect(events).toEqual([{ type: 'rejected', code: 'key_invalid' }])
})

test('a body that only `headers` tells of, and that nothing has read, is misuse', async () => {
  const req = Object.assign(new IncomingMessage(new Socket()), {
    method: 'POST',
    url: '/payouts',
    headers: { 'content-type': 'application/json', 'content-length': 15, 'idempotency-key': 'order-1001' },
  })
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme' })
  const error = await new Promise((resolve) => once(req, new ServerResponse(req), resolve))
  expect(error).toMatchObject({ code: 'body_not_parsed' })
})

test('a request without a socket is answered', async () => {
  const events: string[] = []
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', onEvent: ({ type }) => events.push(type) })
  const pay = async (): Promise<string> => {
    const req = Object.assign(new IncomingMessage(null as never), {
      method: 'POST',
      url: '/payouts',
      headers: { 'idempotency-key': 'order-1001' },
      body: undefined,
    })
    const res = new ServerResponse(req)
    const wire = new PassThrough()
    res.assignSocket(wire as never)
    const finished = new Promise((resolve) => res.once('finish', resolve))
    once(req, res, () => {
      res.statusCode = 201
      res.end('paid')
    })
    await finished
    return String(wire.read())
  }
  for (let i = 0; i < 2; i++) expect(await pay()).toMatch(/^HTTP\/1.1 201 Created\r\n[\s\S]*paid$/)
  expect(events).toEqual(['claimed', 'completed', 'replayed'])
})
