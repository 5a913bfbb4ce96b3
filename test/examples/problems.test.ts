import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PATHS, type Received, type Sent, type Service, startService } from './payments-service.js'

const PATH = '/api/service/payout/create'
const JSON_TYPE = { 'content-type': 'application/json' }
const BODY = { amount: 100, currency: 'EUR' }

let service: Service

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.stop())

describe('every refusal has one shape', () => {
  const cases: [name: string, status: number, code: string, path: string, sent: Sent][] = [
    ['no API key', 401, 'unauthenticated', PATH, { apiKey: '', body: BODY }],
    ['an unknown API key', 401, 'unauthenticated', PATH, { apiKey: 'demo_nobody', body: BODY }],
    ['another scheme', 401, 'unauthenticated', PATH, { headers: { authorization: 'Basic demo_acme' }, body: BODY }],
    ['no API key, before the body is read', 401, 'unauthenticated', PATH, { apiKey: '', raw: '{', headers: JSON_TYPE }],
    ['the list without an API key', 401, 'unauthenticated', '/operations', { method: 'GET', apiKey: '' }],
    ['broken JSON', 400, 'body_not_json', PATH, { raw: '{"amount":', headers: JSON_TYPE }],
    ['JSON that is not UTF-8', 400, 'body_not_json', PATH, { raw: notUtf8(0xe9), headers: JSON_TYPE }],
    ['the same, compressed', 400, 'body_not_json', PATH, encoded('gzip', gzipSync(notUtf8(0xe9)))],
    ['JSON that is no object or array', 400, 'body_not_json', PATH, { raw: '7', headers: JSON_TYPE }],
    ['no body', 400, 'validation_failed', PATH, {}],
    ['an array', 400, 'validation_failed', PATH, { body: [BODY] }],
    ['a wrong field', 400, 'validation_failed', PATH, { body: { ...BODY, amount: -1 } }],
    ['a body nested too deeply', 400, 'body_too_deep', PATH, { raw: nested(40_000), headers: JSON_TYPE, key: 'deep' }],
    ['the same without a key', 400, 'validation_failed', PATH, { raw: nested(40_000), headers: JSON_TYPE }],
    ['text', 415, 'media_type_unsupported', PATH, { raw: 'amount=1', headers: { 'content-type': 'text/plain' } }],
    ['a form', 415, 'media_type_unsupported', PATH, form('application/x-www-form-urlencoded')],
    ['multipart', 415, 'media_type_unsupported', PATH, form('multipart/form-data; boundary=x')],
    ['no content type', 415, 'media_type_unsupported', PATH, { raw: new Uint8Array([123, 125]) }],
    ['another charset', 415, 'media_type_unsupported', PATH, form('application/json; charset=iso-8859-1')],
    ['an unknown encoding', 415, 'media_type_unsupported', PATH, encoded('snappy', Buffer.from('{}'))],
    ['broken gzip', 400, 'request_invalid', PATH, encoded('gzip', Buffer.from('{}'))],
    ['a large body', 413, 'body_too_large', PATH, { body: { ...BODY, reference: 'x'.repeat(200_000) } }],
    ['a small one that inflates', 413, 'body_too_large', PATH, encoded('gzip', gzipSync(`"${'x'.repeat(200_000)}"`))],
    ['an unknown path', 404, 'path_not_found', '/api/service/payout/steal', { body: BODY }],
    ['a path in another spelling', 404, 'path_not_found', '/api/service/Payout/create', { body: BODY }],
    ['a path with a slash more', 404, 'path_not_found', `${PATH}/`, { body: BODY }],
    ['a path that cannot be decoded', 404, 'path_not_found', '/%E0%A4%A', { body: BODY }],
    ['GET on an operation', 405, 'method_not_allowed', PATH, { method: 'GET' }],
    ['PUT on an operation', 405, 'method_not_allowed', PATH, { method: 'PUT', body: BODY }],
    ['POST on the list', 405, 'method_not_allowed', '/operations', { body: BODY }],
    ['DELETE on health', 405, 'method_not_allowed', '/health', { method: 'DELETE' }],
    ['a negative delay', 400, 'delay_invalid', PATH, { body: BODY, headers: { 'x-demo-delay-ms': '-1' } }],
    ['a delay that is too long', 400, 'delay_invalid', PATH, { body: BODY, headers: { 'x-demo-delay-ms': '10001' } }],
    ['a delay that is no number', 400, 'delay_invalid', PATH, { body: BODY, headers: { 'x-demo-delay-ms': '1e3' } }],
    ['an invalid key', 400, 'key_invalid', PATH, { body: BODY, key: 'x'.repeat(256) }],
    ['an empty key', 400, 'key_invalid', PATH, { body: BODY, key: '' }],
  ]

  test.each(cases)('%s: %i %s', async (_name, status, code, path, sent) => {
    const refusal = await service.send(path, sent)
    expect([refusal.status, refusal.json.code]).toEqual([status, code])
    expectProblem(refusal)
  })

  test.each(cases.filter(([, status]) => status === 413 || status === 415))(
    '%s leaves the key untouched',
    async (_name, _status, _code, path, sent) => {
      const key = randomUUID()
      await service.send(path, { ...sent, key })
      expect(service.log.filter((line) => line.key === key)).toEqual([])
      expect((await service.send(path, { body: BODY, key })).status).toBe(201)
    },
  )
})

test('bodies that are not UTF-8 are never one operation', async () => {
  const key = randomUUID()
  for (const byte of [0xe9, 0xe8]) {
    const headers = { 'content-type': 'application/json; charset=UTF-8' }
    expect((await service.send(PATH, { raw: notUtf8(byte), headers, key })).status).toBe(400)
  }
  expect(service.log.filter((line) => line.key === key)).toEqual([])
  expect((await service.send(PATH, { body: BODY, key })).status).toBe(201)
})

test('JSON in UTF-16 is refused: RFC 8259 §8.1', async () => {
  const raw = new Uint8Array(Buffer.from(JSON.stringify(BODY), 'utf16le'))
  const headers = { 'content-type': 'application/json; charset=utf-16le' }
  const { status, json } = await service.send(PATH, { raw, headers, key: randomUUID() })
  expect([status, json.code]).toEqual([415, 'media_type_unsupported'])
})

test('401 says how to authenticate', async () => {
  const missing = await service.send(PATH, { apiKey: '', body: BODY })
  expect(missing.headers.get('www-authenticate')).toBe('Bearer realm="payments"')
  const unknown = await service.send(PATH, { apiKey: 'demo_nobody', body: BODY })
  expect(unknown.headers.get('www-authenticate')).toBe('Bearer realm="payments", error="invalid_token"')
})

test.each([
  [PATH, 'GET', 'POST'],
  ['/operations', 'POST', 'GET, HEAD'],
  ['/health', 'PUT', 'GET, HEAD'],
])('405 on %s says which methods there are', async (path, method, allow) => {
  expect((await service.send(path, { method })).headers.get('allow')).toBe(allow)
})

test('a 400 names each field that is wrong', async () => {
  const body = { amount: 1.5, currency: 'XXX', beneficiary: { name: '', iban: 'DE1' }, tip: 1 }
  const { json } = await service.send('/api/service/beneficiary-payout/create', { body })
  expect(json.errors.map(({ path }: { path: string }) => path).sort()).toEqual([
    'amount',
    'beneficiary.iban',
    'beneficiary.name',
    'currency',
    'tip',
  ])
  for (const { message } of json.errors) expect(message).toMatch(/\w/)
  const events = ['merchant_updated', 'rain']
  const nested = { url: 'ftp://shop.example', events }
  const refusal = await service.send('/api/service/webhook-subscription/create', { body: nested })
  expect(refusal.json.errors).toEqual([
    { path: 'url', message: 'Must be an http or https URL' },
    { path: 'events[1]', message: expect.any(String) },
  ])
})

test('a body with thousands of unknown fields gets a short answer', async () => {
  const body = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`field${i}`, i]))
  const { status, json } = await service.send(PATH, { body })
  expect(status).toBe(400)
  expect(json.errors).toHaveLength(20)
})

test('GET /health answers ok, without an API key', async () => {
  const { status, json } = await service.send('/health', { method: 'GET', apiKey: '' })
  expect([status, json]).toEqual([200, { status: 'ok' }])
})

test('whatever JSON a client sends, to whichever operation, it is nobody else’s fault', async () => {
  const samples = new Map<string, Record<string, unknown>>()
  for (const path of PATHS) samples.set(path, await service.sample(path))
  const statuses = new Set<number>()

  const anyRequest = fc.constantFrom(...PATHS).chain((path) => {
    const sample = samples.get(path) as Record<string, unknown>
    const field = fc.constantFrom(...Object.keys(sample), '__proto__', 'constructor', 'toString', 'idempotencyKey')
    const changed = fc.tuple(field, fc.jsonValue()).map(([name, value]) => {
      const body = { ...sample }
      Object.defineProperty(body, name, { value, enumerable: true, configurable: true, writable: true })
      return body
    })
    const body = fc.oneof(changed, fc.jsonValue(), fc.constant(sample))
    return fc.record({ path: fc.constant(path), body, hasKey: fc.boolean() })
  })

  await fc.assert(
    fc.asyncProperty(anyRequest, async ({ path, body, hasKey }) => {
      const answer = await service.send(path, {
        raw: JSON.stringify(body),
        headers: JSON_TYPE,
        ...(hasKey && { key: randomUUID() }),
      })
      statuses.add(answer.status)
      expect(answer.status).toBeLessThan(500)
      if (answer.status >= 400) expectProblem(answer)
    }),
    { numRuns: 300 },
  )
  expect([...statuses]).toEqual(expect.arrayContaining([201, 200, 400]))
}, 60_000)

function expectProblem({ status, headers, json }: Received): void {
  expect(headers.get('content-type')).toBe('application/problem+json')
  expect(json).toMatchObject({
    type: expect.stringMatching(/^urn:(payments-example|once-per-key):problem:[a-z_]+$/),
    title: expect.stringMatching(/\w/),
    status,
    detail: expect.stringMatching(/\w/),
    message: json.detail,
    code: expect.stringMatching(/^[a-z_]+$/),
  })
}

function nested(levels: number): string {
  return `{"reference":${'['.repeat(levels)}${']'.repeat(levels)}}`
}

/** A body that is right but for one byte of its reference. */
function notUtf8(byte: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array([...Buffer.from('{"amount":100,"currency":"EUR","reference":"'), byte, ...Buffer.from('"}')])
}

function form(contentType: string): Sent {
  return { raw: new Uint8Array([123, 125]), headers: { 'content-type': contentType } }
}

function encoded(encoding: string, bytes: Buffer): Sent {
  return { raw: new Uint8Array(bytes), headers: { ...JSON_TYPE, 'content-encoding': encoding } }
}
