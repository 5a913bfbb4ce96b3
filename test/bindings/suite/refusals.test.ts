import { bodyField, ietfDraft } from 'once-per-key'
import { describe, expect, test } from 'vitest'
import { failingStore } from '../../support/failing-store.js'
import { FRAMEWORKS } from './frameworks/index.js'
import { type Sent, serve } from './serve.js'

const paid = () => ({ text: 'paid' })

describe.each(FRAMEWORKS)('$name', (framework) => {
  test.each<{ what: string; sent: Sent }>([
    { what: 'another body', sent: { json: { amount: 200 } } },
    { what: 'another query', sent: { path: '/payouts?dry=1' } },
    { what: 'another path', sent: { path: '/payouts/17' } },
    { what: 'another method', sent: { method: 'PUT' } },
    { what: 'a body of bytes', sent: { bytes: 'a', headers: { 'Content-Type': 'application/octet-stream' } } },
  ])('the key with $what is told so, and the handler does not run', async ({ sent }) => {
    const serving = await serve(framework, paid)
    await serving.send()
    const other = await serving.send(sent)
    expect(other.status).toBe(409)
    expect(other.header('Content-Type')).toBe('application/problem+json')
    expect(other.header('X-Should-Retry')).toBe('false')
    expect(other.lines('Retry-After')).toEqual([])
    expect(other.json()).toMatchObject({ status: 409, code: 'mismatched' })
    expect(serving.runs()).toBe(1)
  })

  test('JSON with its members in another order, and other white space, is the same', async () => {
    const serving = await serve(framework, paid)
    await serving.send({ json: { amount: 100, to: { name: 'Zoë', bank: 1 } } })
    const bytes = '{ "to": {"bank":1.0, "name":"Zo\\u00eb"},\n "amount": 1e2 }'
    const replay = await serving.send({ bytes, headers: { 'Content-Type': 'application/json; charset=utf-8' } })
    expect(replay.header('Idempotent-Replayed')).toBe('true')
  })

  test('two scopes never meet', async () => {
    const options = { scope: (headerOf: (name: string) => string | undefined) => headerOf('x-merchant') }
    const serving = await serve(framework, paid, { options })
    for (const merchant of ['acme', 'globex']) {
      expect((await serving.send({ headers: { 'X-Merchant': merchant } })).lines('Idempotent-Replayed')).toEqual([])
    }
    expect(serving.runs()).toBe(2)
  })

  test.each<{ code: string; status: number; sent: Sent }>([
    { code: 'key_missing', status: 400, sent: { key: null } },
    { code: 'key_invalid', status: 400, sent: { key: '' } },
    { code: 'key_invalid', status: 400, sent: { key: 'k'.repeat(256) } },
    { code: 'key_invalid', status: 400, sent: { key: 'undefined' } },
    {
      code: 'body_too_deep',
      status: 400,
      sent: { bytes: `${'['.repeat(1_001)}${']'.repeat(1_001)}`, headers: { 'Content-Type': 'application/json' } },
    },
  ])('$status $code, and the handler does not run', async ({ code, status, sent }) => {
    const serving = await serve(framework, paid, { options: { required: true } })
    const refusal = await serving.send(sent)
    expect(refusal.status).toBe(status)
    expect(refusal.header('Content-Type')).toBe('application/problem+json')
    expect(refusal.json()).toMatchObject({ status, code, type: `urn:once-per-key:problem:${code}` })
    expect(serving.events).toEqual([{ type: 'rejected', code }])
    expect(serving.runs()).toBe(0)
  })

  test.skipIf(framework.joinsHeaderLines)('two lines of the key’s header are 400 key_invalid', async () => {
    const serving = await serve(framework, paid)
    const refusal = await serving.send({ headers: { 'Idempotency-key': 'other' } })
    expect(refusal.json()).toMatchObject({ status: 400, code: 'key_invalid' })
    expect(serving.runs()).toBe(0)
  })

  test('`problemStatuses` and `renderProblem` shape refusals', async () => {
    const renderProblem = ({ code }: { code: string }) => ({
      contentType: 'application/vnd.api+json',
      body: { errors: [code] },
    })
    const serving = await serve(framework, paid, { options: { problemStatuses: ietfDraft, renderProblem } })
    await serving.send()
    const refusal = await serving.send({ json: { amount: 200 } })
    expect([refusal.status, refusal.header('Content-Type')]).toEqual([422, 'application/vnd.api+json'])
    expect(refusal.json()).toEqual({ errors: ['mismatched'] })
  })

  test('a store that is away is 503 with advice to come back, and the handler does not run', async () => {
    const store = failingStore()
    store.next('begin', () => Promise.reject(new Error('The store is away')))
    const serving = await serve(framework, paid, { options: { store } })
    const refusal = await serving.send()
    expect(refusal.json()).toMatchObject({ status: 503, code: 'store_unavailable' })
    expect([refusal.header('Retry-After'), refusal.header('X-Should-Retry')]).toEqual(['1', 'true'])
    expect(serving.runs()).toBe(0)
    expect((await serving.send()).body.toString()).toBe('paid')
  })

  test('a scope that is none is misuse: the application answers with 500, and the handler does not run', async () => {
    const serving = await serve(framework, paid, { options: { scope: () => undefined } })
    expect((await serving.send()).status).toBe(500)
    expect(serving.runs()).toBe(0)
    expect(serving.events).toEqual([])
  })

  test.runIf(framework.readsBodies)(
    'a body beyond `maxBodyBytes` is 413 body_too_large; without a key it passes',
    async () => {
      const serving = await serve(framework, async ({ bytes }) => ({ text: String((await bytes()).byteLength) }))
      const large = { bytes: new Uint8Array(2 ** 20 + 1), headers: { 'Content-Type': 'application/octet-stream' } }
      const refusal = await serving.send(large)
      expect(refusal.json()).toMatchObject({ status: 413, code: 'body_too_large' })
      expect(serving.runs()).toBe(0)
      expect((await serving.send({ ...large, key: null })).body.toString()).toBe(String(2 ** 20 + 1))
      expect((await serving.send({ ...large, bytes: large.bytes.subarray(1) })).body.toString()).toBe(String(2 ** 20))
    },
  )

  describe('with the key in a deprecated field', () => {
    const legacyKey = bodyField('idempotencyKey', {
      deprecatedSince: new Date('2026-01-01T00:00:00Z'),
      sunset: new Date('2027-01-01T00:00:00Z'),
      link: 'https://example.com/moved',
    })
    const inField = { key: null, json: { amount: 100, idempotencyKey: 'k' } }
    const DEPRECATION = [
      '@1767225600',
      'Fri, 01 Jan 2027 00:00:00 GMT',
      '<https://example.com/moved>; rel="deprecation"',
    ]
    const deprecationOf = (reply: Awaited<ReturnType<Awaited<ReturnType<typeof serve>>['send']>>) =>
      ['Deprecation', 'Sunset', 'Link'].map((name) => reply.header(name))

    test('a client can move from field to header between two tries; the field alone is deprecated', async () => {
      const serving = await serve(framework, paid, { options: { legacyKey } })
      expect(deprecationOf(await serving.send(inField))).toEqual(DEPRECATION)
      const replay = await serving.send(inField)
      expect(replay.header('Idempotent-Replayed')).toBe('true')
      expect(deprecationOf(replay)).toEqual(DEPRECATION)
      const byHeader = await serving.send()
      expect(byHeader.header('Idempotent-Replayed')).toBe('true')
      expect(byHeader.lines('Deprecation')).toEqual([])
      expect(serving.runs()).toBe(1)
    })

    test('both, and differing, are 400 key_invalid; refusals are deprecated too', async () => {
      const serving = await serve(framework, paid, { options: { legacyKey } })
      const refusal = await serving.send({ ...inField, key: 'other' })
      expect(refusal.json()).toMatchObject({ status: 400, code: 'key_invalid' })
      expect(deprecationOf(refusal)).toEqual(DEPRECATION)
      expect(serving.runs()).toBe(0)
    })

    test('a form has it, too', async () => {
      const serving = await serve(framework, paid, { options: { legacyKey } })
      const form = { key: null, headers: { 'Content-Type': 'application/x-www-form-urlencoded' } }
      await serving.send({ ...form, bytes: 'amount=1&idempotencyKey=k' })
      const replay = await serving.send({ ...form, bytes: 'idempotencyKey=k&amount=1' })
      expect(replay.header('Idempotent-Replayed')).toBe('true')
    })

    test.runIf(framework.readsBodies)('in JSON that is broken it is 400 key_invalid', async () => {
      const serving = await serve(framework, paid, { options: { legacyKey } })
      const headers = { 'Content-Type': 'application/json' }
      const refusal = await serving.send({ key: null, headers, bytes: '{"idempotencyKey":"k"' })
      expect(refusal.json()).toMatchObject({ status: 400, code: 'key_invalid' })
      expect(serving.runs()).toBe(0)
    })
  })
})
