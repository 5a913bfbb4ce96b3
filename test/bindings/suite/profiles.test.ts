import { agenticCommerce, ietfDraft07, universalCommerce } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { failingStore } from '../../support/failing-store.js'
import { gate } from '../../support/gate.js'
import type { Framework, Handler } from './framework.js'
import { FRAMEWORKS } from './frameworks/index.js'
import { type Setting, serve } from './serve.js'

// The rows of docs/profiles.md, on every framework.

const documentation = 'https://developer.example.com/idempotency'
const paid: Handler = () => ({ status: 201, json: { id: 'po_1' } })
const answering =
  (...statuses: number[]): Handler =>
  () => {
    const status = statuses.length > 1 ? (statuses.shift() as number) : (statuses[0] as number)
    return { status, json: { status } }
  }

/** A request whose handler runs until the gate opens, and the reply to its duplicate. */
async function inFlight(framework: Framework, setting: Setting) {
  const [began, end] = [gate(), gate()]
  const handler: Handler = async () => {
    began.open()
    await end.opened
    return { json: {} }
  }
  const { send } = await serve(framework, handler, setting)
  const first = send()
  await began.opened
  return { first, second: await send(), end }
}

const failing = async (): Promise<never> => {
  throw new Error('The store is down.')
}

describe.each(FRAMEWORKS)('the IETF draft 07, on $name', (framework) => {
  const options = { profile: ietfDraft07, documentation }

  test('§2.1: a key is a string in quotes, and the bare one is the same', async () => {
    const { send, runs } = await serve(framework, paid, { options })
    await send({ key: '"8e03978e-40d5-43e8-bc93-6894a57f9324"' })
    const retry = await send({ key: '8e03978e-40d5-43e8-bc93-6894a57f9324' })
    expect([retry.status, retry.header('Idempotent-Replayed'), runs()]).toEqual([201, 'true', 1])
  })

  test('§2.6: a retry gets the result of the completed request, success or error', async () => {
    const { send, runs } = await serve(framework, answering(404), { options })
    const [first, retry] = [await send(), await send()]
    expect([first.status, first.header('Idempotent-Replayed')]).toEqual([404, undefined])
    expect([retry.status, retry.header('Idempotent-Replayed'), retry.body]).toEqual([404, 'true', first.body])
    expect(runs()).toBe(1)
  })

  test('§2.6: a concurrent request is a conflict, 409', async () => {
    const { first, second, end } = await inFlight(framework, { options })
    expect(second.json()).toMatchObject({ status: 409, code: 'in_flight', type: documentation })
    expect(second.lines('Link')).toEqual([`<${documentation}>; rel="describedby"`])
    end.open()
    expect((await first).status).toBe(200)
  })

  test('§2.7: a missing key is 400 where it is required, with a link to the documentation', async () => {
    const { send } = await serve(framework, paid, { options: { ...options, required: true } })
    const missing = await send({ key: null })
    expect([missing.status, missing.header('Content-Type')]).toEqual([400, 'application/problem+json'])
    expect(missing.json()).toMatchObject({ type: documentation, code: 'key_missing' })
    expect(missing.lines('Link')).toEqual([`<${documentation}>; rel="describedby"`])
  })

  test('§2.7: another payload is 422, with a link to the documentation; also after an error', async () => {
    const { send } = await serve(framework, answering(201, 404), { options })
    for (const key of ['paid', 'not found']) {
      await send({ key })
      const other = await send({ key, json: { amount: 7 } })
      expect([key, other.status]).toEqual([key, 422])
      expect(other.json()).toMatchObject({ type: documentation, code: 'mismatched' })
      expect(other.lines('Link')).toEqual([`<${documentation}>; rel="describedby"`])
    }
  })

  test('§2.7: a 429 too, and 408, 425 and 499, which complete nothing', async () => {
    const { send, runs } = await serve(framework, answering(429, 408, 425, 499, 201), { options })
    const statuses = []
    for (let i = 0; i < 6; i++) statuses.push((await send()).status)
    expect([statuses, runs()]).toEqual([[429, 408, 425, 499, 201, 201], 5])
  })

  test('§2.7: a 5xx is left to the resource: it runs again', async () => {
    const { send, runs } = await serve(framework, answering(502, 201), { options })
    expect([(await send()).status, (await send()).status, runs()]).toEqual([502, 201, 2])
  })
})

describe.each(FRAMEWORKS)('the Agentic Commerce Protocol, on $name', (framework) => {
  const options = { profile: agenticCommerce }
  const key = '0d6f1b9e-1c5e-4a3b-9d46-6a1f3cf6a9d2'

  test('§6.1: a POST without a key is 400 idempotency_key_required; other methods need none', async () => {
    const { send, runs } = await serve(framework, paid, { options })
    const missing = await send({ key: null })
    expect([missing.status, missing.header('Content-Type')]).toEqual([400, 'application/json'])
    expect(missing.json()).toEqual({
      type: 'invalid_request',
      code: 'idempotency_key_required',
      message: expect.stringContaining('Idempotency-Key'),
    })
    expect((await send({ key: null, method: 'PUT' })).status).toBe(201)
    expect(runs()).toBe(1)
  })

  test('§6.1: a key has at most 255 characters, whatever they are', async () => {
    const { send } = await serve(framework, paid, { options })
    expect((await send({ key: `#${'k'.repeat(254)}` })).status).toBe(201)
    const longer = await send({ key: 'k'.repeat(256) })
    expect([longer.status, longer.json()]).toMatchObject([400, { type: 'invalid_request', code: 'key_invalid' }])
  })

  test('§6.1: a key belongs to the identity and the path', async () => {
    const scope = (header: (name: string) => string | undefined) => header('x-merchant') || 'acme'
    const { send, runs } = await serve(framework, paid, { options: { ...options, scope } })
    const places = [{}, { path: '/checkout_sessions/1/complete' }, { headers: { 'X-Merchant': 'other' } }]
    for (const place of places) expect((await send({ key, ...place })).header('Idempotent-Replayed')).toBeUndefined()
    for (const place of places) expect((await send({ key, ...place })).header('Idempotent-Replayed')).toBe('true')
    expect(runs()).toBe(3)
  })

  test('§6.2: requests are compared by their JSON: members in any order, numbers by value, and nothing else', async () => {
    const { send } = await serve(framework, paid, { options })
    const bytes = '{"items":[1,2],"price":1,"note":"x"}'
    const headers = { 'Content-Type': 'application/json' }
    expect((await send({ key, bytes, headers })).status).toBe(201)
    const same = ['{"price":1.0,"items":[1,2],"note":"x"}', '{ "note":"x", "items" : [1,2], "price":1 }']
    for (const each of same) {
      const more = { ...headers, 'User-Agent': 'another', 'Request-Id': '7' }
      const again = await send({ key, bytes: each, headers: more })
      expect([again.status, again.header('Idempotent-Replayed')]).toEqual([201, 'true'])
    }
    const others = [
      '{"items":[2,1],"price":1,"note":"x"}',
      '{"items":[1,2],"price":1,"note":null}',
      '{"items":[1,2],"price":1}',
    ]
    for (const each of others) expect((await send({ key, bytes: each, headers })).status).toBe(422)
  })

  test('§6.3: a retry gets the original response and status, marked as a replay, and nothing runs again', async () => {
    const { send, runs } = await serve(framework, answering(201, 405, 402), { options })
    for (const [each, status] of [
      ['a', 201],
      ['b', 405],
      ['c', 402],
    ] as const) {
      const first = await send({ key: each })
      const retry = await send({ key: each })
      expect([first.status, retry.status, retry.body]).toEqual([status, status, first.body])
      expect([first.header('Idempotent-Replayed'), retry.header('Idempotent-Replayed')]).toEqual([undefined, 'true'])
    }
    expect(runs()).toBe(3)
  })

  test('§6.3: of every answer below 500, also of 429', async () => {
    const { send, runs } = await serve(framework, answering(429, 408, 425, 499), { options })
    for (const status of [429, 408, 425, 499]) {
      const [first, retry] = [await send({ key: `${status}` }), await send({ key: `${status}` })]
      expect([first.status, retry.status, retry.header('Idempotent-Replayed')]).toEqual([status, status, 'true'])
    }
    expect(runs()).toBe(4)
  })

  test('§6.4: another body is 422 idempotency_conflict', async () => {
    const { send } = await serve(framework, answering(402), { options })
    await send({ key })
    const other = await send({ key, json: { amount: 7 } })
    expect([other.status, other.header('Retry-After')]).toEqual([422, undefined])
    expect(other.json()).toEqual({ type: 'invalid_request', code: 'idempotency_conflict', message: expect.any(String) })
  })

  test('§6.4: another body is 409 idempotency_conflict where the option says so', async () => {
    const { send } = await serve(framework, paid, { options: { ...options, problemStatuses: { mismatched: 409 } } })
    await send({ key })
    const other = await send({ key, json: { amount: 7 } })
    expect([other.status, other.header('Retry-After')]).toEqual([409, undefined])
    expect(other.json()).toMatchObject({ type: 'invalid_request', code: 'idempotency_conflict' })
  })

  test('§6.4: a request in flight is 409 idempotency_in_flight, with Retry-After', async () => {
    const { first, second, end } = await inFlight(framework, { options })
    expect(second.status).toBe(409)
    expect(Number(second.header('Retry-After'))).toBeGreaterThanOrEqual(1)
    expect(second.json()).toEqual({
      type: 'invalid_request',
      code: 'idempotency_in_flight',
      message: expect.any(String),
    })
    end.open()
    expect((await first).status).toBe(200)
  })

  test('§6.5: a 5xx is not kept, and a retry is a fresh request', async () => {
    const { send, runs } = await serve(framework, answering(500, 503, 201), { options })
    const statuses = [await send({ key }), await send({ key }), await send({ key }), await send({ key })]
    expect(statuses.map(({ status }) => status)).toEqual([500, 503, 201, 201])
    expect(runs()).toBe(3)
  })

  test('§6.6: an answer is kept for 24 hours; then the key is new', async () => {
    let now = 0
    const store = new MemoryStore({ now: () => now })
    const { send, runs } = await serve(framework, paid, { options: { ...options, store } })
    await send({ key })
    now = 24 * 3_600_000 - 1
    expect((await send({ key })).header('Idempotent-Replayed')).toBe('true')
    now += 1
    expect((await send({ key, json: { amount: 7 } })).status).toBe(201)
    expect(runs()).toBe(2)
  })

  test('§3: each response to a POST with a key has the key, as it was sent: answers, replays and refusals', async () => {
    const echoes: Handler = () => ({ status: 201, json: {}, headers: [['Idempotency-Key', 'of the handler']] })
    const { send } = await serve(framework, echoes, { options })
    const replies = [await send({ key: `"${key}"` }), await send({ key }), await send({ key, json: {} })]
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 422])
    expect(replies.map((reply) => reply.lines('Idempotency-Key'))).toEqual([[`"${key}"`], [key], [key]])
    expect((await send({ key: null })).lines('Idempotency-Key')).toEqual([])
  })

  test('a store that fails is 503 service_unavailable', async () => {
    const store = failingStore()
    store.always('begin', failing)
    const { send } = await serve(framework, paid, { options: { ...options, store: store as never } })
    const failed = await send({ key })
    expect([failed.status, failed.json()]).toMatchObject([503, { type: 'service_unavailable' }])
  })
})

describe.each(FRAMEWORKS)('the Universal Commerce Protocol, on $name', (framework) => {
  const options = { profile: universalCommerce }

  test('keys are used where they are sent', async () => {
    const { send, runs } = await serve(framework, paid, { options })
    expect([(await send({ key: null })).status, (await send({ key: null })).status, runs()]).toEqual([201, 201, 2])
  })

  test('uniqueness: per client and operation, so that a key names another operation on another path', async () => {
    const { send, runs } = await serve(framework, paid, { options })
    for (const path of ['/checkout-sessions', '/checkout-sessions/1/cancel'])
      expect((await send({ path })).status).toBe(201)
    expect(runs()).toBe(2)
  })

  test('server storage: 48 hours', async () => {
    let now = 0
    const store = new MemoryStore({ now: () => now })
    const { send } = await serve(framework, paid, { options: { ...options, store } })
    await send()
    now = 48 * 3_600_000 - 1
    expect((await send()).header('Idempotent-Replayed')).toBe('true')
    now += 1
    expect((await send()).header('Idempotent-Replayed')).toBeUndefined()
  })

  test('on a duplicate with a matching payload: the answer is returned, not made again; also an error below 500', async () => {
    const { send, runs } = await serve(framework, answering(201, 402), { options })
    for (const key of ['a', 'b']) {
      const [first, retry] = [await send({ key }), await send({ key })]
      expect([retry.status, retry.body, retry.header('Idempotent-Replayed')]).toEqual([
        first.status,
        first.body,
        'true',
      ])
    }
    expect(runs()).toBe(2)
  })

  test('what is stored is a result, which 408, 425, 429 and 499 are not: the same request runs again', async () => {
    const { send, runs } = await serve(framework, answering(429, 408, 425, 499, 200), { options })
    const statuses = []
    for (let i = 0; i < 6; i++) statuses.push((await send()).status)
    expect([statuses, runs()]).toEqual([[429, 408, 425, 499, 200, 200], 5])
  })

  test('on a duplicate with another payload: 409, and nothing runs', async () => {
    const { send, runs } = await serve(framework, paid, { options })
    await send()
    const other = await send({ json: { amount: 7 } })
    expect([other.status, other.json(), runs()]).toMatchObject([409, { code: 'mismatched' }, 1])
  })

  test('an error is JSON with `code` and `content`', async () => {
    const { send } = await serve(framework, paid, { options: { ...options, required: true } })
    expect((await send({ key: null })).json()).toMatchObject({
      code: 'key_missing',
      content: expect.stringMatching(/^Send/),
    })
  })

  test('on a storage failure: 503, and nothing runs', async () => {
    const store = failingStore()
    store.always('begin', failing)
    const { send, runs } = await serve(framework, paid, { options: { ...options, store: store as never } })
    expect([(await send()).status, runs()]).toEqual([503, 0])
  })
})
