import { type BodyFieldOptions, bodyField, type Decision } from 'once-per-key/http'
import { describe, expect, test } from 'vitest'
import { engineOnTrial, type Options, outcomeOf, runOf } from '../support/engine-on-trial.js'
import { answer } from '../support/request-facts.js'

const SINCE = new Date('2026-01-01T00:00:00.900Z')
const SUNSET = new Date('2027-01-01T00:00:00Z')
const LINK = 'https://docs.example/migration'

function withField(field: Partial<BodyFieldOptions> = {}, options: Options = {}) {
  return engineOnTrial({ legacyKey: bodyField('idempotencyKey', { deprecatedSince: SINCE, ...field }), ...options })
}

function fromBody(idempotencyKey: unknown, rest: object = { amount: 100 }) {
  return { key: null, body: { ...rest, idempotencyKey } }
}

function extraHeadersOf(decision: Decision) {
  return decision.action === 'bypass' ? undefined : decision.extraHeaders
}

const DEPRECATION = [['Deprecation', '@1767225600']]

describe('the key in a body field', () => {
  test('stands in where the header is absent', async () => {
    const { run } = withField()
    expect((await run(fromBody('order-1'))).context.key).toBe('order-1')
  })

  test('does not save a header that is invalid', async () => {
    const { send } = withField()
    expect(outcomeOf(await send({ ...fromBody('order-1'), key: '' }))).toBe('key_invalid')
  })

  test.each<{ name: string; body: unknown }>([
    { name: 'null', body: { idempotencyKey: null } },
    { name: 'missing', body: {} },
    { name: 'inherited', body: Object.create({ idempotencyKey: 'x' }) },
    { name: 'nested', body: { a: { idempotencyKey: 'x' } } },
    { name: 'in an array', body: [{ idempotencyKey: 'x' }] },
    { name: 'in bytes', body: Buffer.from('{"idempotencyKey":"x"}') },
    { name: 'in a text', body: '{"idempotencyKey":"x"}' },
    { name: 'in no body', body: undefined },
  ])('is absent where it is $name', async ({ body }) => {
    expect(await withField().send({ key: null, body })).toEqual({ action: 'bypass' })
    const required = await withField({}, { required: true }).send({ key: null, body })
    expect([outcomeOf(required), extraHeadersOf(required)]).toEqual(['key_missing', undefined])
  })

  test.each<{ name: string; value: unknown }>([
    { name: 'a number', value: 17 },
    { name: 'zero', value: 0 },
    { name: 'false', value: false },
    { name: 'an array', value: ['order-1'] },
    { name: 'an object', value: { key: 'order-1' } },
    { name: 'an object with a hostile constructor', value: { constructor: { name: { toString: 1 } } } },
    { name: 'an empty string', value: '' },
    { name: 'a quoted nothing', value: '""' },
    { name: '256 characters', value: 'x'.repeat(256) },
    { name: '9 million characters in quotes', value: `"${'x'.repeat(9_000_000)}"` },
    { name: 'a control character', value: 'a\nb' },
    { name: 'half of a surrogate pair', value: 'a\ud800' },
    { name: 'the word undefined', value: 'undefined' },
    { name: 'the word null, which is not null', value: 'null' },
  ])('is 400 key_invalid, never "no key", where it is $name', async ({ value }) => {
    const { store, send } = withField()
    const decision = await send(fromBody(value))
    expect(outcomeOf(decision)).toBe('key_invalid')
    expect(extraHeadersOf(decision)).toEqual(DEPRECATION)
    expect(store.sent).toEqual([])
  })

  test('is the same key as in the header, quoted or not, beyond ASCII or not', async () => {
    const { run, send } = withField()
    await run(fromBody('Rechnung-ä'))
    const key = Buffer.from('Rechnung-ä').toString('latin1')
    expect(outcomeOf(await send({ key }))).toBe('in_flight')
    expect(outcomeOf(await send(fromBody('"Rechnung-ä"')))).toBe('execute') // RFC 8941 strings are ASCII: another key.
    await run(fromBody('order-1'))
    expect(outcomeOf(await send(fromBody('"order-1"')))).toBe('in_flight')
  })

  test('never counts in the fingerprint: a client may move from field to header between two tries', async () => {
    const { run, send } = withField()
    await (await run(fromBody('order-1'))).settle(answer())
    expect(outcomeOf(await send({ key: 'order-1', body: { amount: 100 } }))).toBe('replay')
    expect(outcomeOf(await send(fromBody('order-1')))).toBe('replay')
    expect(outcomeOf(await send(fromBody('order-1', { amount: 101 })))).toBe('mismatched')

    const nested = (idempotencyKey: string) => ({ key: 'order-2', body: { deep: { idempotencyKey } } })
    await run(nested('x'))
    expect(outcomeOf(await send(nested('y')))).toBe('mismatched')
  })

  test('never counts in what the application’s `fingerprint` answers, or what a body says in toJSON', async () => {
    const { run, send } = withField({}, { fingerprint: ({ body }) => body })
    await run(fromBody('order-1'))
    expect(outcomeOf(await send({ key: 'order-1', body: { amount: 100 } }))).toBe('in_flight')

    class Body {
      constructor(readonly json: object) {}
      toJSON() {
        return this.json
      }
    }
    const parsed = withField()
    await parsed.run({ key: 'order-1', body: new Body({ amount: 100, idempotencyKey: 'order-1' }) })
    expect(outcomeOf(await parsed.send({ key: 'order-1', body: new Body({ amount: 100 }) }))).toBe('in_flight')
  })
})

describe('a body that nobody has taken apart may have the key in it', () => {
  const unread = { key: null, body: undefined, bodyWasRead: false }
  const sentAs = (type: string) => ({
    ...unread,
    headers: [['Content-Type', type] as const, ['Content-Length', '40'] as const],
  })

  test.each([
    'application/json',
    'Application/JSON; charset=utf-8',
    'application/vnd.payments.v1+json',
    'application/x-www-form-urlencoded',
  ])('so %s is misuse, required or not', async (type) => {
    for (const required of [false, true]) {
      const { send, store } = withField({}, { required })
      await expect(send(sentAs(type))).rejects.toThrow(expect.objectContaining({ code: 'body_not_parsed' }))
      expect(store.sent).toEqual([])
    }
  })

  test.each([
    { name: 'bytes', body: Buffer.from('{"idempotencyKey":"order-1"}') },
    { name: 'text', body: '{"idempotencyKey":"order-1"}' },
    { name: 'nothing, though it was read', body: undefined },
  ])('nor has a parser that leaves $name', async ({ body }) => {
    const { send } = withField()
    const sent = send({ ...sentAs('application/json'), body, bodyWasRead: true })
    await expect(sent).rejects.toThrow(expect.objectContaining({ code: 'body_not_parsed' }))
  })

  test('but not for requests that are skipped, that have no body, or whose body does not name the field', async () => {
    expect(outcomeOf(await withField({}, { skip: () => true }).send(sentAs('application/json')))).toBe('bypass')
    const { send } = withField()
    expect(outcomeOf(await send({ ...unread, headers: [['Content-Type', 'application/json']] }))).toBe('bypass')
    for (const body of ['hello', Buffer.from('{"amount":100}')]) {
      expect(outcomeOf(await send({ ...sentAs('application/json'), body, bodyWasRead: true }))).toBe('bypass')
    }
    for (const type of ['image/png', 'text/plain', 'multipart/form-data; boundary=b', 'application/json-seq']) {
      expect([type, outcomeOf(await send(sentAs(type)))]).toEqual([type, 'bypass'])
    }
  })
})

describe('where header and field are both there', () => {
  const both = { ...fromBody('from-body'), key: 'from-header' }

  test.each([{}, { whenBoth: 'reject' }] as const)('and differ, the request is refused with %o', async (options) => {
    const { store, send } = withField(options)
    const decision = await send(both)
    expect(outcomeOf(decision)).toBe('key_invalid')
    expect(decision.action === 'reject' && decision.problem.detail).toBe(
      'The header Idempotency-Key and the body\'s "idempotencyKey" differ; send one of them.',
    )
    expect(extraHeadersOf(decision)).toEqual(DEPRECATION)
    expect(store.sent).toEqual([])
  })

  test('the field wins with `whenBoth: "field"`, also over a header that is no key', async () => {
    const { send } = withField({ whenBoth: 'field' })
    const decision = await send(both)
    expect(runOf(decision).context.key).toBe('from-body')
    expect(extraHeadersOf(decision)).toEqual(DEPRECATION)
    expect(outcomeOf(await send({ ...both, key: 'another-header' }))).toBe('in_flight')
    expect(outcomeOf(await send({ ...both, key: '' }))).toBe('in_flight')
  })

  test('the header wins with `whenBoth: "header"`, also over a field that is no key', async () => {
    const { send } = withField({ whenBoth: 'header' })
    const decision = await send(both)
    expect(runOf(decision).context.key).toBe('from-header')
    expect(extraHeadersOf(decision)).toEqual(DEPRECATION)
    expect(outcomeOf(await send({ ...fromBody(17), key: 'from-header' }))).toBe('in_flight')
    expect(outcomeOf(await send({ ...both, key: '' }))).toBe('key_invalid')
  })

  test.each(['reject', 'field'] as const)('a field that is no key is refused with %s, and named', async (whenBoth) => {
    const decision = await withField({ whenBoth }).send({ ...fromBody(17), key: 'from-header' })
    expect(outcomeOf(decision)).toBe('key_invalid')
    expect(decision.action === 'reject' && decision.problem.detail).toMatch(/"idempotencyKey" is a number/)
    expect(extraHeadersOf(decision)).toEqual(DEPRECATION)
  })

  test.each(['reject', 'field', 'header'] as const)(
    'they may agree, and either may come alone: %s',
    async (whenBoth) => {
      const { run } = withField({ whenBoth })
      expect((await run({ ...fromBody('order-1'), key: '"order-1"' })).context.key).toBe('order-1')
      expect((await run(fromBody('order-2'))).context.key).toBe('order-2')
      expect((await run({ key: 'order-3' })).context.key).toBe('order-3')
      expect((await run({ ...fromBody(null), key: 'order-4' })).context.key).toBe('order-4')
    },
  )

  test.each([
    { whenBoth: 'reject', outcome: 'misuse' },
    { whenBoth: 'field', outcome: 'misuse' },
    { whenBoth: 'header', outcome: 'execute' },
  ] as const)('a field that nobody could see is $outcome with $whenBoth', async ({ whenBoth, outcome }) => {
    const { send } = withField({ whenBoth })
    const headers = [['Content-Type', 'application/json'] as const, ['Content-Length', '40'] as const]
    const sent = send({ key: 'from-header', headers, body: '{"idempotencyKey":"from-body"}' })
    if (outcome === 'misuse') await expect(sent).rejects.toMatchObject({ code: 'body_not_parsed' })
    else expect(outcomeOf(await sent)).toBe(outcome)
  })
})

describe('a response to a request that used the field', () => {
  test.each([
    { name: 'since when', options: {}, headers: DEPRECATION },
    {
      name: 'until when, and where to read of it',
      options: { sunset: SUNSET, link: LINK },
      headers: [...DEPRECATION, ['Sunset', 'Fri, 01 Jan 2027 00:00:00 GMT'], ['Link', `<${LINK}>; rel="deprecation"`]],
    },
  ])('says $name', async ({ options, headers }) => {
    const decision = await withField(options).send(fromBody('order-1'))
    expect(extraHeadersOf(decision)).toEqual(headers)
  })

  test('says so on a replay and on every refusal as well', async () => {
    const { run, send } = withField()
    const execution = await run(fromBody('order-1'))
    const tooDeep = Array.from({ length: 1_001 }).reduce((inner) => [inner], 1)
    const told = [await send(fromBody('order-1')), await send(fromBody('order-1', { amount: 1 }))]
    told.push(await send(fromBody('order-2', { tooDeep })))
    await execution.settle(answer())
    told.push(await send(fromBody('order-1')))
    expect(told.map(outcomeOf)).toEqual(['in_flight', 'mismatched', 'body_too_deep', 'replay'])
    for (const decision of told) expect(extraHeadersOf(decision)).toEqual(DEPRECATION)
  })

  test('says so to this request only: it is not stored', async () => {
    const { run, send } = withField()
    await (await run(fromBody('order-1'))).settle(answer())
    const replay = await send({ key: 'order-1' })
    expect(extraHeadersOf(replay)).toBeUndefined()
    expect(JSON.stringify(replay)).not.toContain('Deprecation')
  })
})
