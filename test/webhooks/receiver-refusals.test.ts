import { Buffer } from 'node:buffer'
import { createHmac } from 'node:crypto'
import {
  hmacSha256,
  type UnknownEvent,
  type WebhookContext,
  WebhookEventError,
  type WebhookReceiverOptions,
} from 'once-per-key/webhooks'
import { describe, expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { type Delivery, deliver, MERCHANT_PATH, merchantUpdated, receive } from '../support/deliveries.js'
import { failingStore } from '../support/failing-store.js'
import { problemIn } from './problem-in.js'

const SECRET = 'a-secret-that-nobody-shows'
const event = merchantUpdated()
const missing = new WebhookEventError([{ path: 'x-shop', message: 'expected a header; seen: nothing' }])
const TOLD = { eventId: 'evt_1', eventType: 'merchant_updated' }
const nested = (depth: number) =>
  `{"id":"e","type":"merchant_updated","date":"d","payload":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}`

interface Refused {
  readonly name: string
  readonly delivery: Delivery
  readonly status: number
  readonly code: string
  readonly options?: Partial<WebhookReceiverOptions>
  readonly retried?: boolean
  /** What `onEvent` hears of the event, besides whose it is. */
  readonly told?: { readonly eventId: string; readonly eventType: string }
}

const REFUSED: readonly Refused[] = [
  { name: 'with GET', delivery: { method: 'GET' }, status: 405, code: 'method_not_allowed' },
  { name: 'with PUT', delivery: { method: 'PUT' }, status: 405, code: 'method_not_allowed' },
  { name: 'with DELETE', delivery: { method: 'DELETE' }, status: 405, code: 'method_not_allowed' },
  ...['text/plain', 'application/cloudevents+json', 'application/jsonl', 'text/json, application/json', ''].map(
    (type) => ({
      name: `of content type ${JSON.stringify(type)}`,
      delivery: { headers: { 'Content-Type': type } },
      status: 415,
      code: 'content_type_unsupported',
    }),
  ),
  {
    name: 'that is compressed',
    delivery: { headers: { 'Content-Encoding': 'gzip' } },
    status: 415,
    code: 'content_type_unsupported',
  },
  {
    name: 'of more bytes than allowed',
    delivery: {},
    options: { maxBodyBytes: 20 },
    status: 413,
    code: 'body_too_large',
  },
  {
    name: 'of more bytes than allowed, without a length',
    delivery: {
      headers: { 'Content-Length': '', 'Transfer-Encoding': 'chunked' },
      body: `${(21).toString(16)}\r\n${'a'.repeat(21)}\r\n0\r\n\r\n`,
    },
    options: { maxBodyBytes: 20 },
    status: 413,
    code: 'body_too_large',
  },
  {
    name: 'of more than 1 MiB',
    delivery: { body: { ...event, more: 'a'.repeat(1_048_576) } },
    status: 413,
    code: 'body_too_large',
  },
  {
    name: 'that verify refuses',
    delivery: {},
    options: { verify: () => false },
    status: 401,
    code: 'signature_refused',
  },
  {
    name: 'that verify refuses later',
    delivery: {},
    options: { verify: async () => false },
    status: 401,
    code: 'signature_refused',
  },
  {
    name: 'that verify refuses, before anything is read from it',
    delivery: { body: '{not JSON' },
    options: { verify: () => false },
    status: 401,
    code: 'signature_refused',
  },
  { name: 'with an empty body', delivery: { body: '' }, status: 400, code: 'body_malformed' },
  { name: 'that is not JSON', delivery: { body: '{"id":' }, status: 400, code: 'body_malformed' },
  {
    name: 'that is not UTF-8',
    delivery: { body: Buffer.from(JSON.stringify({ ...event, more: 'é' }), 'latin1') },
    status: 400,
    code: 'body_malformed',
  },
  ...['null', '[]', '"text"', '{}'].map((body) => ({
    name: `that is ${body}`,
    delivery: { body },
    status: 400,
    code: 'event_invalid',
  })),
  {
    name: 'with a wrong payload of a known type',
    delivery: { body: { ...event, payload: { hasApiKey: 'yes' } } },
    status: 400,
    code: 'event_invalid',
    told: TOLD,
  },
  ...['', 'a\ud800', `${'a'.repeat(256)}\ud800`].map((id) => ({
    name: `with the id ${JSON.stringify(id).slice(0, 20)}`,
    delivery: { body: { ...event, id } },
    status: 400,
    code: 'event_invalid',
    told: { ...TOLD, eventId: id.slice(0, 255) },
  })),
  {
    name: 'whose type is not the path’s',
    delivery: { path: '/api/service/webhook-event/mandate_setup_started' },
    status: 400,
    code: 'type_disagrees',
    told: TOLD,
  },
  {
    name: 'of an unknown type on the path of a known one',
    delivery: { body: { ...event, type: 'other' } },
    status: 400,
    code: 'type_disagrees',
    told: { ...TOLD, eventType: 'other' },
  },
  {
    name: 'on a path that cannot be decoded',
    delivery: { path: '/api/service/webhook-event/%zz' },
    status: 400,
    code: 'type_disagrees',
    told: TOLD,
  },
  {
    name: 'nested 5,000 levels deep',
    delivery: { body: nested(5_000) },
    status: 400,
    code: 'body_too_deep',
    told: { ...TOLD, eventId: 'e' },
  },
  {
    name: 'of a known type without a handler',
    delivery: {
      path: '/api/service/webhook-event/mandate_setup_started',
      body: { ...event, type: 'mandate_setup_started', payload: {} },
    },
    status: 501,
    code: 'event_unhandled',
    retried: true,
    told: { ...TOLD, eventType: 'mandate_setup_started' },
  },
  {
    name: 'of an unknown type without onUnknownEvent',
    delivery: { path: '/api/service/webhook-event/other', body: { ...event, type: 'other' } },
    status: 501,
    code: 'event_unhandled',
    retried: true,
    told: { ...TOLD, eventType: 'other' },
  },
  {
    name: 'of a type that every object has a member of',
    delivery: { path: '/api/service/webhook-event/constructor', body: { ...event, type: 'constructor' } },
    status: 501,
    code: 'event_unhandled',
    retried: true,
    told: { ...TOLD, eventType: 'constructor' },
  },
]

describe.each(BINDINGS)('on $name', (binding) => {
  test.each(REFUSED)('a delivery $name is answered $status $code: nothing runs, nothing is stored', async (one) => {
    const { delivery, options, status, code, retried = false, told } = one
    const store = failingStore()
    const { port, handled, events, errors } = await receive(binding, { options: { ...options, store } })
    const reply = await deliver(port, delivery)
    expect(problemIn(reply)).toEqual({ status, code, shouldRetry: String(retried), retryAfter: undefined })
    expect(reply.header('allow')).toBe(status === 405 ? 'POST' : undefined)
    expect({ handled, errors, sent: store.sent }).toEqual({ handled: [], errors: [], sent: [] })
    const issues = code === 'event_invalid' ? { issues: (reply.json() as { errors: unknown }).errors } : {}
    expect(events).toEqual([{ type: 'rejected', code, source: 'payments', ...told, ...issues }])
    expect(JSON.stringify(events)).not.toContain('Acme')
    expect(JSON.stringify(reply.body.toString())).not.toContain('Acme')
  })
})

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

describe('a delivery is taken', () => {
  test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON ;x=y'])(
    'of content type %s',
    async (contentType) => {
      const { port } = await receive(express5)
      expect((await deliver(port, { headers: { 'Content-Type': contentType } })).status).toBe(200)
    },
  )

  test('that begins with a byte order mark, which RFC 8259 §8.1 lets a parser ignore', async () => {
    const { port } = await receive(express5)
    expect((await deliver(port, { body: `\ufeff${JSON.stringify(event)}` })).status).toBe(200)
  })

  test('that says in capitals that it is not compressed', async () => {
    const { port } = await receive(express5)
    expect((await deliver(port, { headers: { 'Content-Encoding': 'Identity' } })).status).toBe(200)
  })

  test('of exactly as many bytes as allowed, and of none more', async () => {
    const length = Buffer.byteLength(JSON.stringify(event))
    const exact = await receive(express5, { options: { maxBodyBytes: length } })
    expect((await deliver(exact.port)).status).toBe(200)
    const less = await receive(express5, { options: { maxBodyBytes: length - 1 } })
    expect((await deliver(less.port)).status).toBe(413)
  })

  test('with an id of 255 characters, in quotes or not', async () => {
    const { port, handled } = await receive(express5)
    for (const id of ['é'.repeat(255), `"${'a'.repeat(253)}"`, 'a'.repeat(255)]) {
      expect((await deliver(port, { body: { ...event, id } })).status).toBe(200)
    }
    expect(handled).toHaveLength(3)
  })

  test('of an unknown type where onUnknownEvent handles it', async () => {
    const seen: unknown[] = []
    const { port } = await receive(express5, {
      options: {
        onUnknownEvent: (unknown: UnknownEvent, { source }: WebhookContext) =>
          void seen.push([unknown.sentType, unknown.payload, source]),
      },
    })
    const delivery = { path: '/api/service/webhook-event/other%20type', body: { ...event, type: 'other type' } }
    expect((await deliver(port, delivery)).status).toBe(200)
    expect((await deliver(port, delivery)).header('idempotent-replayed')).toBe('true')
    expect(seen).toEqual([['other type', { id: 'mer_1', displayName: 'Acme' }, 'payments']])
  })

  test('nested a thousand levels deep in all', async () => {
    const { port } = await receive(express5)
    expect((await deliver(port, { body: nested(999) })).status).toBe(200)
    expect((await deliver(port, { body: nested(1_000) })).status).toBe(400)
  })

  test('with a member that names its prototype, which changes nothing', async () => {
    const { port, handled } = await receive(express5)
    const body = JSON.stringify(event).replace(
      '"payload":{',
      '"__proto__":{"id":"evil"},"payload":{"__proto__":{"a":1},',
    )
    expect((await deliver(port, { body })).status).toBe(200)
    expect(handled[0]?.event.id).toBe('evt_1')
    expect(handled[0]?.event.payload).not.toHaveProperty('a')
  })
})

describe('a bad envelope', () => {
  test('is answered with one list of what is wrong, by path and without values', async () => {
    const { port } = await receive(express5)
    const body = { id: 7, type: 'merchant_updated', payload: { hasApiKey: 'yes', apps: [{}, { hasApiKey: 'hush' }] } }
    const reply = await deliver(port, { body })
    const { errors } = reply.json() as { errors: { path: string; message: string }[] }
    expect(errors.map(({ path }) => path).sort()).toEqual([
      'date',
      'id',
      'payload.apps[1].hasApiKey',
      'payload.hasApiKey',
    ])
    expect(reply.body.toString()).not.toMatch(/yes|hush/)
  })

  test('is answered, and told of by its event, with the first hundred of many mistakes', async () => {
    const { port, events } = await receive(express5)
    const reply = await deliver(port, {
      body: { ...event, payload: { users: Array.from({ length: 5_000 }, () => 1) } },
    })
    const { errors } = reply.json() as { errors: unknown[] }
    expect(errors).toHaveLength(100)
    expect(events).toEqual([expect.objectContaining({ code: 'event_invalid', issues: errors })])
  })
})

describe('verify', () => {
  const raw = Buffer.from(`{ "id":"evt_1",  ${JSON.stringify(event).slice(14)}`)
  const signature = createHmac('sha256', SECRET).update(raw).digest('hex')
  const verify = hmacSha256({ header: 'X-Signature', secrets: [SECRET] })

  test('sees the bytes as they were sent, and the headers', async () => {
    const { port, handled, events } = await receive(express5, { options: { verify } })
    const delivery = { headers: { 'X-Signature': signature }, body: raw }
    expect((await deliver(port, delivery)).status).toBe(200)
    expect((await deliver(port, { ...delivery, body: JSON.stringify(event) })).status).toBe(401)
    expect((await deliver(port, { body: raw })).status).toBe(401)
    expect(handled).toHaveLength(1)
    expect(JSON.stringify(events)).not.toContain(signature)
  })

  test('refuses a wrong repeat of what was handled: a record is no pass', async () => {
    const { port } = await receive(express5, { options: { verify } })
    await deliver(port, { headers: { 'X-Signature': signature }, body: raw })
    expect((await deliver(port)).status).toBe(401)
  })

  test.each([
    {
      name: 'throws',
      verify: () => {
        throw new Error('no keys')
      },
      message: /^verify\(\) failed: no keys\./,
    },
    { name: 'rejects', verify: () => Promise.reject(new Error('no keys')), message: /^verify\(\) failed: no keys\./ },
    { name: 'answers nothing', verify: () => undefined, message: /^verify\(\) returned undefined\./ },
    { name: 'answers a truthy value', verify: () => ({ ok: false }), message: /^verify\(\) returned an object/ },
  ])('that $name is misuse, passed to next: nothing runs, nothing is stored', async ({ verify: broken, message }) => {
    const store = failingStore()
    const options = { store, verify: broken as never }
    const { port, handled, errors, events } = await receive(express5, { options })
    expect((await deliver(port)).body.toString()).toBe('the application')
    expect(errors).toEqual([
      expect.objectContaining({ code: 'verify_failed', message: expect.stringMatching(message) }),
    ])
    expect({ handled, sent: store.sent, events }).toEqual({ handled: [], sent: [], events: [] })
  })
})

describe('source', () => {
  test.each([
    { name: 'nothing', source: () => undefined },
    { name: 'an empty string', source: () => '' },
    { name: 'a coerced nothing', source: () => 'undefined' },
    { name: 'a rejection', source: () => Promise.reject(new Error('no')) },
  ])('that answers $name is misuse, passed to next: nothing runs, nothing is stored', async ({ source }) => {
    const store = failingStore()
    const { port, handled, errors } = await receive(express5, { options: { store, source } })
    expect((await deliver(port)).status).toBe(500)
    expect(errors).toEqual([
      expect.objectContaining({
        code: 'scope_invalid',
        message: expect.stringMatching(/^source\(\) (returned|failed)/),
      }),
    ])
    expect({ handled, sent: store.sent }).toEqual({ handled: [], sent: [] })
  })

  test.each([
    {
      name: 'thrown',
      source: () => {
        throw missing
      },
    },
    { name: 'rejected with', source: () => Promise.reject(missing) },
  ])('that finds a fault of the delivery is a refusal: $name', async ({ source }) => {
    const store = failingStore()
    const { port, handled, errors, events } = await receive(express5, { options: { store, source } })
    const response = await deliver(port)
    expect(response.status).toBe(400)
    expect(problemIn(response)).toMatchObject({ code: 'event_invalid' })
    expect(events).toEqual([
      expect.objectContaining({ type: 'rejected', code: 'event_invalid', issues: missing.issues }),
    ])
    expect({ handled, errors, sent: store.sent }).toEqual({ handled: [], errors: [], sent: [] })
  })

  test('is asked only for what is verified', async () => {
    let asked = 0
    const source = () => {
      asked++
      return 'payments'
    }
    const { port } = await receive(express5, { options: { source, verify: () => false } })
    await deliver(port, { path: MERCHANT_PATH })
    expect(asked).toBe(0)
  })
})
