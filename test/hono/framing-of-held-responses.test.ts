import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { streamText } from 'hono/streaming'
import { idempotency as fetchIdempotency } from 'once-per-key/fetch'
import { idempotency, singleTenant } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'

// A handler's Transfer-Encoding stayed on a response whose body was held, so the first answer on Node was no valid HTTP: it
// announced chunks and sent plain bytes.

test('the answer of streamText arrives, first and replayed', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
  const app = new Hono()
  app.post('/payouts', once, (c) =>
    streamText(c, async (stream) => {
      await stream.write('pa')
      await stream.write('id')
    }),
  )
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  onTestFinished(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  for (const replay of [null, 'true']) {
    const init = { method: 'POST', headers: { 'Idempotency-Key': 'k' } }
    const response = await fetch(`http://127.0.0.1:${port}/payouts`, init)
    expect([await response.text(), response.headers.get('Idempotent-Replayed')]).toEqual(['paid', replay])
  }
})

const OF_THE_CONNECTION = {
  Connection: 'close',
  'Keep-Alive': 'timeout=5',
  'Proxy-Connection': 'close',
  TE: 'trailers',
  Trailer: 'Digest',
  'Transfer-Encoding': 'chunked',
  Upgrade: 'h2c',
}

test.each([
  { what: 'bytes', body: () => 'paid', maxAnswerBytes: 10, replay: 200 },
  { what: 'a stream', body: stream, maxAnswerBytes: 1, replay: 409 },
])('no header of the connection is on a response with $what', async ({ body, maxAnswerBytes, replay }) => {
  const once = fetchIdempotency({ store: new MemoryStore(), scope: singleTenant, maxAnswerBytes })
  const handle = once(() => new Response(body(), { headers: { ...OF_THE_CONNECTION, 'X-Receipt': '17' } }))
  const responses = [await handle(payout()), await handle(payout())]
  expect(responses.map(({ status }) => status)).toEqual([200, replay])
  for (const { headers } of responses) {
    for (const name of Object.keys(OF_THE_CONNECTION)) expect([name, headers.get(name)]).toEqual([name, null])
  }
  expect(responses[0]?.headers.get('X-Receipt')).toBe('17')
  expect(await responses[0]?.text()).toBe('paid')
})

test.each([
  { length: '4', sent: '4' },
  { length: '25', sent: null },
])('a Content-Length of $length with four bytes is sent as $sent', async ({ length, sent }) => {
  const once = fetchIdempotency({ store: new MemoryStore(), scope: singleTenant })
  const handle = once(() => new Response('paid', { headers: { 'Content-Length': length } }))
  const [first, replay] = [await handle(payout()), await handle(payout())]
  expect([first, replay].map(({ headers }) => headers.get('Content-Length'))).toEqual([sent, sent])
})

// Without a body any length was kept, since after HEAD it is that of a body which is not sent: on Node such a client waited for it.
test.each([
  { method: 'POST', status: 200, sent: null },
  { method: 'POST', status: 205, sent: null },
  { method: 'POST', status: 304, sent: '25' },
  { method: 'HEAD', status: 200, sent: '25' },
])('a Content-Length of 25 without a body is sent as $sent: $method, $status', async ({ method, status, sent }) => {
  const options = { store: new MemoryStore(), scope: singleTenant, methods: [method], isSuccess: () => true }
  const handle = fetchIdempotency(options)(() => new Response(null, { status, headers: { 'Content-Length': '25' } }))
  const [first, replay] = [await handle(payout(method)), await handle(payout(method))]
  expect([first, replay].map(({ headers }) => headers.get('Content-Length'))).toEqual([sent, sent])
})

test('a Content-Length of 0 stays', async () => {
  const handle = fetchIdempotency({ store: new MemoryStore(), scope: singleTenant })(
    () => new Response(null, { status: 201, headers: { 'Content-Length': '0' } }),
  )
  const [first, replay] = [await handle(payout()), await handle(payout())]
  expect([first, replay].map(({ headers }) => headers.get('Content-Length'))).toEqual(['0', '0'])
})

function payout(method = 'POST'): Request {
  return new Request('https://api.example/payouts', { method, headers: { 'Idempotency-Key': 'k' } })
}

function stream(): ReadableStream<Uint8Array> {
  const written = async function* () {
    yield new TextEncoder().encode('pa')
    await new Promise((resolve) => setTimeout(resolve, 1))
    yield new TextEncoder().encode('id')
  }
  return ReadableStream.from(written()) as ReadableStream<Uint8Array>
}
