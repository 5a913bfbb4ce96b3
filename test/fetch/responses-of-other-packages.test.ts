import { Readable } from 'node:stream'
import { Hono } from 'hono'
import { idempotency, singleTenant } from 'once-per-key/fetch'
import { idempotency as forHono } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'

// A Response of another package may lack what the standard gives each a default. Without `statusText` it was sent, but never stored: its key
// stayed in flight until maxRunMs.

/** What every Response of the library's tests has in common with the platform's; each lacks something. */
class OtherResponse {
  readonly status = 201
  readonly headers = new Headers({ 'Content-Type': 'text/plain', 'X-Payout': 'po_1' })
  readonly bodyUsed: boolean | undefined = false
  readonly body: unknown = null

  async arrayBuffer(): Promise<ArrayBuffer> {
    return new TextEncoder().encode('paid').buffer as ArrayBuffer
  }
}

/** As a package for older platforms has it: what reads it is all that it shares with the platform's. */
class OtherStream {
  getReader() {
    return new Response('paid').body?.getReader()
  }
}

const RESPONSES: readonly { readonly what: string; readonly make: () => object }[] = [
  { what: 'has no `statusText`', make: () => Object.assign(new OtherResponse(), { body: new Response('paid').body }) },
  { what: 'has no `body`', make: () => Object.assign(new OtherResponse(), { body: undefined, bodyUsed: undefined }) },
  {
    what: 'has a stream of another package',
    make: () => Object.assign(new OtherResponse(), { body: new OtherStream() }),
  },
  {
    what: 'has a stream of Node',
    make: () => Object.assign(new OtherResponse(), { body: Readable.from(['pa', 'id']) }),
  },
  {
    what: 'has headers of another package',
    make: () => Object.assign(new OtherResponse(), { body: undefined, headers: new OtherHeaders() }),
  },
]

/** Its values are numbers, too. */
class OtherHeaders extends Map<string, unknown> {
  constructor() {
    super([
      ['content-type', 'text/plain'],
      ['x-payout', 'po_1'],
      ['content-length', 4],
    ])
  }

  override get(name: string): unknown {
    return super.get(name.toLowerCase())
  }
}

interface Protected {
  readonly pay: () => Promise<Response>
  readonly events: string[]
  readonly idle: () => Promise<void>
}

const BINDINGS: readonly { readonly name: string; protect(answer: () => object): Protected }[] = [
  {
    name: 'Fetch',
    protect(answer) {
      const { events, options } = setting()
      const once = idempotency(options)
      const handle = once(() => answer() as Response)
      return { events, idle: once.idle, pay: () => handle(payout()) }
    },
  },
  {
    name: 'Hono',
    protect(answer) {
      const { events, options } = setting()
      const once = forHono(options)
      const app = new Hono()
      app.post('/payouts', once, () => answer() as Response)
      return { events, idle: once.idle, pay: async () => app.request(payout()) }
    },
  },
]

describe.each(BINDINGS)('in $name, a Response of another package', ({ protect }) => {
  test.each(RESPONSES)('that $what is stored and sent as the platform’s', async ({ make }) => {
    const { pay, events, idle } = protect(make)
    const first = await seen(await pay())
    expect(first).toEqual([201, 'paid', 'po_1', null])
    await idle()
    expect(await seen(await pay())).toEqual([201, 'paid', 'po_1', 'true'])
    expect(events).toEqual(['claimed', 'completed', 'replayed'])
  })
})

const UNREADABLE: readonly { readonly what: string; readonly make: () => unknown }[] = [
  { what: 'no Response', make: () => ({ status: 201, headers: { 'x-payout': 'po_1' }, body: 'paid' }) },
  { what: 'a Request', make: () => payout() },
  { what: 'nothing', make: () => undefined },
  {
    what: 'a Response whose status throws',
    make: () => Object.defineProperty(new OtherResponse(), 'status', { get: () => fail() }),
  },
  {
    what: 'a Response whose headers throw',
    make: () => Object.defineProperty(new OtherResponse(), 'headers', { get: () => fail() }),
  },
  {
    what: 'a Response whose headers cannot be listed',
    make: () => Object.assign(new OtherResponse(), { headers: { get: () => null, has: () => false } }),
  },
  {
    what: 'a Response whose body throws',
    make: () => Object.defineProperty(new OtherResponse(), 'body', { get: () => fail() }),
  },
  {
    what: 'a Response whose body cannot be read',
    make: () => Object.assign(new OtherResponse(), { body: undefined, arrayBuffer: async () => fail() }),
  },
  { what: 'a Response that somebody reads', make: () => locked() },
  {
    what: 'a Response of an invalid status text',
    make: () => Object.assign(new OtherResponse(), { statusText: 'a\nb' }),
  },
]

test.each(UNREADABLE)('$what, returned or thrown, ends the run: the outcome is unknown', async ({ make }) => {
  for (const throws of [false, true]) {
    const { events, options } = setting()
    const once = idempotency(options)
    const handle = once(() => {
      if (throws) throw make()
      return make() as Response
    })
    await handle(payout()).catch(() => {})
    await once.idle()
    expect(events).toEqual(['claimed', 'failed'])
    await handle(payout()).catch(() => {})
    await once.idle()
    expect(events).toEqual(['claimed', 'failed', 'claimed', 'failed'])
  }
})

test.each([
  { what: 'of an error', make: () => Response.error() },
  { what: 'of an upgrade', make: () => Object.assign(new OtherResponse(), { status: 101 }) },
])('a Response $what is returned as it is, and ends the run', async ({ make }) => {
  const { events, options } = setting()
  const once = idempotency(options)
  const response = make() as Response
  expect(await once(() => response)(payout())).toBe(response)
  await once.idle()
  expect(events).toEqual(['claimed', 'failed'])
})

function setting() {
  const events: string[] = []
  const onEvent = ({ type }: { readonly type: string }) => void events.push(type)
  return { events, options: { store: new MemoryStore(), scope: singleTenant, onEvent } }
}

function payout(): Request {
  return new Request('https://api.example/payouts', { method: 'POST', headers: { 'Idempotency-Key': 'order-1' } })
}

async function seen(response: Response) {
  const { status, headers } = response
  return [status, await response.text(), headers.get('X-Payout'), headers.get('Idempotent-Replayed')]
}

function locked(): Response {
  const response = new Response('paid')
  response.body?.getReader()
  return response
}

function fail(): never {
  throw new Error('It cannot be read.')
}
