import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { type IdempotencyContext, type IdempotencyRequest, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

// Adapters that run an application without a socket of HTTP's, such as those of serverless platforms, fill `headers` and
// leave `rawHeaders` empty. The key was looked for on the wire alone: such requests passed without one, and were run again.

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

test('a body that only `headers` tells of, and that nothing has read, is misuse', async () => {
  const req = Object.assign(new IncomingMessage(new Socket()), {
    method: 'POST',
    url: '/payouts',
    headers: { 'content-type': 'text/plain', 'content-length': 15, 'idempotency-key': 'order-1001' },
  })
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme' })
  const error = await new Promise((resolve) => once(req, new ServerResponse(req), resolve))
  expect(error).toMatchObject({ code: 'body_not_parsed' })
})
