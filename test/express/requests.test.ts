import type { Express } from 'express'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listen } from '../support/bindings.js'
import { payouts, type Sent, VERSIONS } from '../support/payouts.js'
import { request } from '../support/raw-client.js'

describe.each(VERSIONS)('on $version', ({ make }) => {
  describe('the key', () => {
    test.each([
      { name: 'a UUID', key: '8e03978e-40d5-43e8-bc93-6894a57f9324', is: '8e03978e-40d5-43e8-bc93-6894a57f9324' },
      { name: 'UTF-8', key: Buffer.from('Rechnung-ä-☃-😀'), is: 'Rechnung-ä-☃-😀' },
      { name: 'Latin-1', key: Buffer.from('Rechnung-ä', 'latin1'), is: 'Rechnung-ä' },
      { name: 'an RFC 8941 string', key: '"a\\"b\\\\c"', is: 'a"b\\c' },
      { name: 'among white space', key: '  \torder-1 \t', is: 'order-1' },
      { name: '255 characters', key: 'x'.repeat(255), is: 'x'.repeat(255) },
      { name: '255 astral characters', key: Buffer.from('😀'.repeat(255)), is: '😀'.repeat(255) },
    ])('is read, and its retry replays: $name', async ({ key, is }) => {
      const { post, runs } = await payouts(make)
      expect(await post({ keys: [key] })).toMatchObject({ status: 201, json: { run: 1, key: is }, replayed: false })
      expect(await post({ keys: [key] })).toMatchObject({ status: 201, json: { run: 1, key: is }, replayed: true })
      expect(runs()).toBe(1)
    })

    test('is the same in quotes and bare, and in UTF-8 and Latin-1', async () => {
      const { post } = await payouts(make)
      await post({ keys: ['abc'] })
      expect(await post({ keys: ['"abc"'] })).toMatchObject({ replayed: true })
      await post({ keys: [Buffer.from('ä')] })
      expect(await post({ keys: [Buffer.from('ä', 'latin1')] })).toMatchObject({ replayed: true })
    })

    test.each([
      { name: 'empty', keys: [''] },
      { name: 'white space', keys: ['   '] },
      { name: 'a quoted nothing', keys: ['""'] },
      { name: '256 characters', keys: ['x'.repeat(256)] },
      { name: '256 astral characters', keys: [Buffer.from('😀'.repeat(256))] },
      { name: 'a tab inside', keys: ['a\tb'] },
      { name: 'a C1 control in Latin-1', keys: [Buffer.from([0x61, 0x85])] },
      { name: 'a C1 control in UTF-8', keys: [Buffer.from('a\u0085')] },
      { name: 'sent in two lines', keys: ['a', 'b'] },
      { name: 'sent in two equal lines', keys: ['a', 'a'] },
    ])('is 400 key_invalid, and the handler does not run: $name', async ({ keys }) => {
      const { post, runs } = await payouts(make)
      const reply = await post({ keys })
      expect(reply).toMatchObject({ status: 400, code: 'key_invalid', json: { status: 400 } })
      expect(reply.header('Content-Type')).toBe('application/problem+json')
      expect(reply.header('X-Should-Retry')).toBe('false')
      expect(runs()).toBe(0)
    })

    test('may be missing: the request passes untouched, each time', async () => {
      const { post, runs } = await payouts(make)
      for (const run of [1, 2])
        expect(await post({ keys: [] })).toMatchObject({ status: 201, json: { run, key: null } })
      expect(runs()).toBe(2)
    })

    test('may not be missing under `required`', async () => {
      const { post, runs } = await payouts(make, { options: { required: true } })
      expect(await post({ keys: [] })).toMatchObject({ status: 400, code: 'key_missing' })
      expect(runs()).toBe(0)
    })

    test('counts on PUT as on POST, and not on GET', async () => {
      const { post, runs } = await payouts(make)
      for (const method of ['PUT', 'PUT', 'GET', 'GET']) await post({ method, keys: [method], body: null })
      expect(runs()).toBe(3)
    })

    test('of one merchant says nothing of another’s', async () => {
      const { post } = await payouts(make)
      for (const [i, merchant] of ['acme', 'globex'].entries()) {
        expect(await post({ headers: [`X-Merchant: ${merchant}`] })).toMatchObject({
          status: 201,
          json: { run: i + 1 },
        })
      }
    })
  })

  describe('a body', () => {
    const SAME = [
      { name: 'member order and white space', a: '{"a":1,"b":[1,2]}', b: '{ "b": [1, 2],\n"a": 1 }' },
      { name: 'two spellings of a number', a: '{"a":100}', b: '{"a":1e2}' },
      { name: 'numbers beyond 2^53 that parse as the same', a: '[9007199254740993]', b: '[9007199254740992]' },
      { name: 'no body at all', a: null, b: null },
    ]
    test.each(SAME)('is the same request: $name', async ({ a, b }) => {
      const { post, runs } = await payouts(make)
      expect(await post({ body: a })).toMatchObject({ status: 201 })
      expect(await post({ body: b })).toMatchObject({ status: 201, replayed: true })
      expect(runs()).toBe(1)
    })

    const OTHER = [
      { name: 'array order', a: '[1,2]', b: '[2,1]' },
      { name: 'a value', a: '{"amount":100}', b: '{"amount":101}' },
      { name: 'number and text', a: '{"amount":100}', b: '{"amount":"100"}' },
      { name: '1e400 and null', a: '{"amount":1e400}', b: '{"amount":null}' },
      { name: '1e400 and -1e400', a: '{"amount":1e400}', b: '{"amount":-1e400}' },
      { name: '__proto__', a: '{"__proto__":{"amount":1}}', b: '{"__proto__":{"amount":2}}' },
      { name: '__proto__ and nothing', a: '{"__proto__":{"amount":1}}', b: '{}' },
      { name: 'lone surrogates', a: '["\\ud800"]', b: '["\\udbff"]' },
      { name: 'lone surrogates as the whole body', a: '"\\ud800"', b: '"\\udbff"' },
      { name: 'neighbours beyond 2^53', a: '[9007199254740992]', b: '[9007199254740994]' },
      { name: 'false and 0', a: 'false', b: '0' },
    ]
    test.each(OTHER)('is another request: $name', async ({ a, b }) => {
      const { post, runs } = await payouts(make)
      expect(await post({ body: a })).toMatchObject({ status: 201 })
      expect(await post({ body: b })).toMatchObject({ status: 409, code: 'mismatched' })
      expect(runs()).toBe(1)
    })

    test.each([
      { name: '100,000 nested arrays', body: `${'['.repeat(100_000)}${']'.repeat(100_000)}` },
      { name: '20,000 nested objects', body: `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}` },
      { name: '1,001 levels', body: `${'['.repeat(1_001)}${']'.repeat(1_001)}` },
    ])('is 400 body_too_deep, and the handler does not run: $name', async ({ body }) => {
      const { post, runs } = await payouts(make)
      expect(await post({ body })).toMatchObject({ status: 400, code: 'body_too_deep' })
      expect(await post()).toMatchObject({ status: 201 })
      expect(runs()).toBe(1)
    })

    test('may be 1,000 levels deep', async () => {
      const { post } = await payouts(make)
      const body = `${'['.repeat(1_000)}${']'.repeat(1_000)}`
      expect(await post({ body })).toMatchObject({ status: 201 })
      expect(await post({ body })).toMatchObject({ replayed: true })
    })

    test.each<{ name: string; sent: Sent }>([
      { name: 'with a length', sent: {} },
      { name: 'in chunks', sent: { chunked: true } },
      { name: 'a form', sent: { type: 'application/x-www-form-urlencoded' } },
    ])('that no parser was mounted for is misuse: $name', async ({ sent }) => {
      const { post, runs } = await payouts(make, { parsers: [] })
      const reply = await post(sent)
      expect(reply).toMatchObject({ status: 500, code: 'body_not_parsed' })
      expect(reply.json?.message).toMatch(/Mount the parser/)
      expect(runs()).toBe(0)
    })

    test.each<{ name: string; sent: Sent; detail: string }>([
      { name: 'of another content type', sent: { type: 'text/plain', body: 'amount=100' }, detail: 'text/plain' },
      { name: 'in chunks', sent: { type: 'text/plain', chunked: true }, detail: 'text/plain' },
      { name: 'without a content type', sent: { type: null }, detail: 'no Content-Type header' },
    ])('that the parsers leave alone is 415 content_type_unsupported: $name', async ({ sent, detail }) => {
      const { post, runs } = await payouts(make)
      const reply = await post(sent)
      expect(reply).toMatchObject({ status: 415, code: 'content_type_unsupported' })
      expect(reply.json?.detail).toContain(detail)
      expect(reply.header('Content-Type')).toBe('application/problem+json')
      expect(reply.header('X-Should-Retry')).toBe('false')
      expect(runs()).toBe(0)
    })

    test('that was sent in chunks and parsed counts like any other', async () => {
      const { post } = await payouts(make)
      await post({ chunked: true })
      expect(await post({ chunked: false })).toMatchObject({ replayed: true })
    })

    test.each([
      { name: 'bytes', parser: make.raw({ type: '*/*' }), a: '{"a":1}', b: '{ "a":1}' },
      { name: 'text', parser: make.text({ type: '*/*' }), a: 'ä', b: 'Ä' },
      { name: 'a form', parser: make.urlencoded({ extended: true }), a: 'a=1&b=2', b: 'a=2&b=2' },
    ])('counts as it was parsed: $name', async ({ parser, a, b }) => {
      const { post, runs } = await payouts(make, { parsers: [parser] })
      const type = 'application/x-www-form-urlencoded'
      expect(await post({ body: a, type })).toMatchObject({ status: 201 })
      expect(await post({ body: a, type })).toMatchObject({ replayed: true })
      expect(await post({ body: b, type })).toMatchObject({ code: 'mismatched' })
      expect(runs()).toBe(1)
    })
  })

  describe('the path and the query', () => {
    test('count as sent', async () => {
      const { post } = await payouts(make)
      await post({ target: '/payouts?a=1&b=2' })
      expect(await post({ target: '/payouts?a=1&b=2' })).toMatchObject({ replayed: true })
      for (const target of ['/payouts?b=2&a=1', '/payouts?a=1', '/payouts', '/payouts?a=1&b=%32', '/Payouts?a=1&b=2']) {
        expect(await post({ target }), target).toMatchObject({ status: 409, code: 'mismatched' })
      }
    })

    test('count with the mount point: one key on two mounts is two requests', async () => {
      const store = new MemoryStore()
      const app: Express = make()
      const router = make.Router()
      router.post('/create', make.json(), idempotency({ store, scope: () => 'acme' }), (_req, res) => void res.json({}))
      app.use('/payouts', router)
      app.use('/refunds', router)
      const { port, close } = await listen(app)
      onTestFinished(close)
      const statuses = []
      for (const mount of ['payouts', 'refunds', 'payouts']) {
        statuses.push((await request(port, { path: `/${mount}/create`, key: 'a' })).status)
      }
      expect(statuses).toEqual([200, 409, 200])
    })
  })
})
