import { Readable } from 'node:stream'
import { idempotency, singleTenant } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import { webhookReceiver } from 'once-per-key/receiver'
import { describe, expect, test } from 'vitest'

// The `clone` of another package's Request may return the request itself. The library read its body, the handler got an empty one, and its
// 201 was stored.

const SENT = JSON.stringify({ id: 'evt_1', type: 'paid', amount: 5_000 })

/** A Request of which only single members are the platform's. */
function otherRequest(members: Record<string, PropertyDescriptor>, body = SENT): Request {
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': `${body.length}`,
    'Idempotency-Key': 'order-1',
  }
  const request = new Request('https://api.example/payouts', { method: 'POST', headers, body })
  for (const [name, member] of Object.entries(members))
    Object.defineProperty(request, name, { ...member, configurable: true })
  return request
}

const REQUESTS: readonly { readonly what: string; readonly make: (body?: string) => Request }[] = [
  { what: 'returns the request itself', make: (body) => otherRequest({ clone: { value: returnThis } }, body) },
  { what: 'throws', make: (body) => otherRequest({ clone: { value: () => fail() } }, body) },
  { what: 'is missing', make: (body) => otherRequest({ clone: { value: undefined } }, body) },
  {
    what: 'shares its stream',
    make(body) {
      const request: Request = otherRequest({ clone: { value: () => ({ body: request.body }) } }, body)
      return request
    },
  },
  {
    what: 'has a stream of Node',
    make: (body = SENT) => otherRequest({ clone: { value: () => ({ body: Readable.from([body]) }) } }, body),
  },
  {
    what: 'shows no stream',
    make: (body = SENT) =>
      otherRequest({ clone: { value: () => ({ arrayBuffer: async () => Buffer.from(body) }) } }, body),
  },
  {
    what: 'has no signal',
    make: (body) => otherRequest({ clone: { value: returnThis }, signal: { value: undefined } }, body),
  },
]

const READERS = ['json', 'text', 'arrayBuffer', 'blob'] as const

describe.each(REQUESTS)('a request whose copy $what', ({ make }) => {
  test.each(READERS)('gives its handler the whole body, by `%s`', async (reader) => {
    const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
    const handle = once(async (request) => new Response(await textOf(await request[reader]()), { status: 201 }))
    const first = await handle(make())
    expect([first.status, await first.text()]).toEqual([201, SENT])
    expect((await handle(make())).headers.get('Idempotent-Replayed')).toBe('true')
    expect((await handle(make('{"amount":6000}'))).status).toBe(409)
  })

  test('is handed on as the same object, whose stream is unread', async () => {
    const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
    const request = make()
    const handle = once(async (same) =>
      Response.json([same === request, same.bodyUsed, await new Response(same.body).text()]),
    )
    expect(await (await handle(request)).json()).toEqual([true, false, SENT])
  })

  test('reaches the handler of its webhook', async () => {
    const delivered: unknown[] = []
    const receiver = webhookReceiver({
      store: new MemoryStore(),
      source: 'test',
      verify: false,
      parse: (raw) => JSON.parse(raw.toString()) as { id: string; type: string; payload: unknown },
      on: { paid: (event: object) => void delivered.push(event) },
    })
    expect((await receiver.fetch(make())).status).toBe(200)
    expect(delivered).toMatchObject([{ amount: 5_000 }])
  })
})

test('a request that cannot be read twice, and takes no body back, is refused before its handler', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
  const request = Object.freeze(otherRequest({ clone: { value: returnThis } }))
  const handling = once(() => expect.unreachable('The handler runs.'))(request)
  await expect(handling).rejects.toMatchObject({
    code: 'raw_body_consumed',
    message: expect.stringContaining('clone()'),
  })
})

test.each([
  { what: 'tells of none', body: null },
  { what: 'gives nothing of it', body: new Response('').body },
])('a request with a length that $what is refused: somebody has read it', async ({ body }) => {
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
  const request = otherRequest({ clone: { value: returnThis }, body: { value: body } })
  const handling = once(() => expect.unreachable('The handler runs.'))(request)
  await expect(handling).rejects.toMatchObject({ code: 'raw_body_consumed' })
})

test('a webhook whose body somebody has read is misuse, and no fault of its sender', async () => {
  const receiver = webhookReceiver({
    store: new MemoryStore(),
    source: 'test',
    verify: () => false,
    parse: () => expect.unreachable('It is parsed.'),
    on: {},
  })
  for (const body of [null, new Response('').body]) {
    const receiving = receiver.fetch(otherRequest({ body: { value: body } }))
    await expect(receiving).rejects.toMatchObject({ code: 'raw_body_consumed' })
  }
})

test('a duplicate without a signal waits for its owner', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant, inFlightWaitMs: 10_000 })
  const handle = once(async () => new Response('paid'))
  const pay = async () =>
    (await handle(otherRequest({ signal: { value: undefined } }))).headers.get('Idempotent-Replayed')
  expect(await Promise.all([pay(), pay()])).toEqual([null, 'true'])
})

function returnThis<This>(this: This): This {
  return this
}

function fail(): never {
  throw new Error('It has no copies.')
}

async function textOf(read: unknown): Promise<string> {
  if (typeof read === 'string') return read
  if (read instanceof Blob) return read.text()
  return read instanceof ArrayBuffer ? Buffer.from(read).toString() : JSON.stringify(read)
}
