import { gzipSync } from 'node:zlib'
import { Hono } from 'hono'
import { idempotency } from 'once-per-key/fetch'
import { idempotency as onHono } from 'once-per-key/hono'
import { type IdempotencyEvent, type IdempotencyOptions, singleTenant, withoutBody } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'

// A handler on Fetch or Hono that calls `await request.json()` threw for such a body: 500, an unknown outcome, and the corrected body under
// the same key was 409 mismatched for a day.

type Handle = (request: Request) => Response | Promise<Response>
interface Options extends Pick<IdempotencyOptions<unknown>, 'onEvent' | 'renderProblem'> {
  readonly fingerprint?: (request: unknown) => unknown
}

const given = (options: Options) => ({ store: new MemoryStore(), scope: singleTenant, ...options })

const BINDINGS: readonly { readonly on: string; readonly serve: (options: Options) => Handle }[] = [
  {
    on: 'Fetch',
    serve: (options) => idempotency(given(options))(async (request) => Response.json(await request.json())),
  },
  {
    on: 'Hono',
    serve(options) {
      const app = new Hono()
      app.post('/', onHono(given(options)), async (c) => c.json(await c.req.json()))
      return (request) => app.fetch(request)
    },
  },
  {
    on: 'Hono, behind middleware that has tried to read it',
    serve(options) {
      const app = new Hono()
      app.use(async (c, next) => {
        await c.req.json().catch(() => null)
        await next()
      })
      app.post('/', onHono(given(options)), async (c) => c.json(await c.req.json()))
      return (request) => app.fetch(request)
    },
  },
]

function starting(serve: (options: Options) => Handle) {
  return function start(options: Options = {}) {
    const events: IdempotencyEvent[] = []
    const handle = serve({ onEvent: (event) => events.push(event), ...options })
    async function send(
      body: string | Uint8Array<ArrayBuffer>,
      { type = 'application/json', key = 'k' as string | null, ...more } = {},
    ) {
      const headers = { 'Content-Type': type, ...(key !== null && { 'Idempotency-Key': key }), ...more }
      const response = await handle(new Request('http://test/', { method: 'POST', headers, body }))
      return { status: response.status, headers: response.headers, text: await response.text() }
    }
    return { send, events }
  }
}

describe.each(BINDINGS)('on $on', ({ serve }) => {
  const start = starting(serve)

  test.each([
    ['cut short', '{"amount":100'],
    ['with a comma too many', '{"amount":100,}'],
    ['that is a form', 'amount=100'],
    ['of white space', ' \r\n'],
    ['with text behind it', '{"amount":100} {}'],
    ['in UTF-16', Buffer.from('{"amount":100}', 'utf16le')],
    ['that is compressed', gzipSync('{"amount":100}')],
    ['of bytes that are no UTF-8', Uint8Array.of(0x7b, 0xff, 0x7d)],
  ])('a body %s is 400 body_malformed before the claim, and the corrected one runs', async (_name, body) => {
    const { send, events } = start()
    const { status, headers, text } = await send(body)
    const { code, type } = JSON.parse(text)
    expect([status, code, type]).toEqual([400, 'body_malformed', 'urn:once-per-key:problem:body_malformed'])
    expect([headers.get('Content-Type'), headers.get('X-Should-Retry')]).toEqual(['application/problem+json', 'false'])
    expect(headers.get('Retry-After')).toBeNull()
    expect(events).toEqual([{ type: 'rejected', code: 'body_malformed' }])
    expect(await send('{"amount":100}')).toMatchObject({ status: 200, text: '{"amount":100}' })
  })

  test.each(['application/json; charset=utf-8', 'Application/JSON', 'application/vnd.acme+json', 'text/json'])(
    'so it is as %s',
    async (type) => {
      const { send } = start()
      expect((await send('{', { type })).status).toBe(400)
      expect((await send('{}', { type })).status).toBe(200)
    },
  )

  test('`renderProblem` shapes it', async () => {
    const { send } = start({ renderProblem: ({ code }) => ({ body: code }) })
    expect(await send('{')).toMatchObject({ status: 400, text: 'body_malformed' })
  })

  test.each([
    ['a number', '100'],
    ['null', 'null'],
    ['a text', '"paid"'],
    ['with a byte order mark', '\ufeff{"amount":100}'],
    ['with bytes that are no UTF-8 inside of a text', Uint8Array.of(0x22, 0xff, 0x22)],
  ])('what `request.json()` reads is JSON: %s', async (_name, body) => {
    const { send } = start()
    expect((await send(body)).status).toBe(200)
    expect((await send(body)).headers.get('Idempotent-Replayed')).toBe('true')
  })
})

describe.each(BINDINGS.slice(0, 1))('it is the handler’s affair on $on', ({ serve }) => {
  const CASES: readonly (readonly [name: string, options: Options, headers: Record<string, string>])[] = [
    ['with a `fingerprint`', { fingerprint: () => 1 }, { 'Content-Type': 'application/json', 'Idempotency-Key': 'k' }],
    [
      'without the body',
      { fingerprint: withoutBody(() => 1) },
      { 'Content-Type': 'application/json', 'Idempotency-Key': 'k' },
    ],
    ['without a key', {}, { 'Content-Type': 'application/json' }],
    ['as another type', {}, { 'Content-Type': 'text/plain', 'Idempotency-Key': 'k' }],
    ['as a type of many JSON texts', {}, { 'Content-Type': 'application/json-seq', 'Idempotency-Key': 'k' }],
  ]

  test.each(CASES)('%s', async (_name, options, headers) => {
    const handle = serve(options)
    const sent = new Request('http://test/', { method: 'POST', headers, body: '{"amount":' })
    await expect(async () => handle(sent)).rejects.toThrow(SyntaxError)
  })
})

test('bodies whose invalid bytes `request.json()` reads alike are two', async () => {
  for (const { serve } of BINDINGS.slice(0, 2)) {
    const { send } = starting(serve)()
    expect((await send(Uint8Array.of(0x22, 0xff, 0x22))).status).toBe(200)
    expect((await send(Uint8Array.of(0x22, 0xfe, 0x22))).status).toBe(409)
  }
})
