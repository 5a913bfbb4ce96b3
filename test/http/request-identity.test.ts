import { withoutBody } from 'once-per-key/http'
import { describe, expect, test, vi } from 'vitest'
import { engineOnTrial, outcomeOf } from '../support/engine-on-trial.js'
import type { Request } from '../support/request-facts.js'

describe('a request is covered', () => {
  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('with the method %s', async (method) => {
    expect(outcomeOf(await engineOnTrial().send({ method }))).toBe('execute')
  })

  test.each(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY'])('not with the method %s', async (method) => {
    expect(outcomeOf(await engineOnTrial({ required: true }).send({ method }))).toBe('bypass')
  })

  test('with the methods that the options name, and no others', async () => {
    const { send } = engineOnTrial({ methods: ['POST', 'GET'] })
    const outcomes = ['POST', 'GET', 'PUT'].map(async (method) => outcomeOf(await send({ method, key: method })))
    expect(await Promise.all(outcomes)).toEqual(['execute', 'execute', 'bypass'])
  })

  test('whatever case its header is written in', async () => {
    const { run } = engineOnTrial()
    for (const name of ['idempotency-key', 'IDEMPOTENCY-KEY', 'iDeMpOtEnCy-KeY']) {
      expect((await run({ key: null, headers: [[name, name]] })).context.key).toBe(name)
    }
  })

  test('by the header that the options name, and by no other', async () => {
    const { run, send } = engineOnTrial({ header: 'X-Request-Id' })
    expect((await run({ key: 'no', headers: [['x-request-id', 'yes']] })).context.key).toBe('yes')
    expect(outcomeOf(await send())).toBe('bypass')
  })

  test('not by a header whose value is another header’s name', async () => {
    expect(outcomeOf(await engineOnTrial().send({ key: null, headers: [['X-Names', 'Idempotency-Key']] }))).toBe(
      'bypass',
    )
  })
})

describe('a request without a key', () => {
  test('passes untouched', async () => {
    const skip = vi.fn(() => false)
    const { send, store } = engineOnTrial({ skip })
    expect(await send({ key: null, body: undefined, bodyWasRead: false, headers: [['Content-Length', '5']] })).toEqual({
      action: 'bypass',
    })
    expect(skip).not.toHaveBeenCalled()
    expect(store.sent).toEqual([])
  })

  test('is 400 key_missing under `required`, and is told which header to send', async () => {
    const decision = await engineOnTrial({ required: true, header: 'X-Key' }).send({ key: null })
    expect(decision).toMatchObject({
      action: 'reject',
      problem: { code: 'key_missing', status: 400, detail: expect.stringContaining('X-Key') },
    })
  })
})

describe('skip', () => {
  test.each([
    { name: 'true', skip: () => true },
    { name: 'a promise of true', skip: async () => true },
  ])('lets a request pass untouched with $name', async ({ skip }) => {
    const trial = engineOnTrial({ skip, required: true })
    expect(outcomeOf(await trial.send())).toBe('bypass')
    expect(outcomeOf(await trial.send({ key: null }))).toBe('bypass')
  })

  test.each([
    { name: 'false', skip: () => false },
    { name: 'a promise of false', skip: async () => false },
  ])('protects a request with $name', async ({ skip }) => {
    expect(outcomeOf(await engineOnTrial({ skip }).send())).toBe('execute')
  })

  test('is given the request', async () => {
    const { send } = engineOnTrial({ skip: ({ target }) => target === '/free' })
    expect(outcomeOf(await send({ target: '/free' }))).toBe('bypass')
    expect(outcomeOf(await send({ target: '/payouts' }))).toBe('execute')
  })

  test.each([
    {
      name: 'throws',
      skip: () => {
        throw new Error('boom')
      },
    },
    { name: 'rejects', skip: () => Promise.reject(new Error('boom')) },
  ])('that $name is misuse', async ({ skip }) => {
    const { send, store } = engineOnTrial({ skip })
    await expect(send()).rejects.toMatchObject({
      code: 'skip_failed',
      cause: { message: 'boom' },
      message: expect.stringContaining('must return true or false'),
    })
    expect(store.sent).toEqual([])
  })
})

describe('a body that was sent, and of which `req.body` shows nothing', () => {
  const LENGTH = ['Content-Length', '17'] as const
  const CHUNKED = ['Transfer-Encoding', 'chunked'] as const
  const UNREAD = [
    { name: 'a length, as Express 5 leaves it', sent: LENGTH, body: undefined },
    { name: 'a length, as Express 4 leaves it', sent: LENGTH, body: {} },
    { name: 'a length, and null', sent: LENGTH, body: null },
    { name: 'a transfer encoding', sent: CHUNKED, body: undefined },
    { name: 'a transfer encoding, and {}', sent: CHUNKED, body: {} },
  ]
  const MEMBERS = [
    'application/json',
    ' Application/JSON; charset=utf-8',
    'application/vnd.payments.v1+json',
    'application/x-www-form-urlencoded',
  ]
  const OTHER = [
    { type: 'text/plain', detail: /does not accept bodies of the content type text\/plain/ },
    { type: 'Text/XML; charset=utf-8', detail: /content type text\/xml\./ },
    { type: 'application/json-seq', detail: /application\/json-seq/ },
    { type: `text/${'x'.repeat(65)}`, detail: /^The Content-Type header is not a valid media type/ },
    { type: 'json', detail: /^The Content-Type header is not a valid media type/ },
    { type: '', detail: /no Content-Type header/ },
    { type: null, detail: /no Content-Type header/ },
  ]
  const typed = (type: string | null) => (type === null ? [] : [['content-type', type] as const])

  describe.each(UNREAD)('with $name', ({ sent, body }) => {
    test.each(MEMBERS)('is misuse where it is %s, which no parser was there for', async (type) => {
      const { send, store, events } = engineOnTrial()
      await expect(send({ headers: [sent, ...typed(type)], body, bodyWasRead: false })).rejects.toMatchObject({
        code: 'body_not_parsed',
        message: expect.stringContaining(
          `such as \`express.${type.toLowerCase().includes('json') ? 'json' : 'urlencoded'}(`,
        ),
      })
      expect([store.sent, events]).toEqual([[], []])
    })

    test.each(OTHER)('is 415 where its content type is $type, and says so', async ({ type, detail }) => {
      const { send, store, events } = engineOnTrial()
      const decision = await send({ headers: [sent, ...typed(type)], body, bodyWasRead: false })
      expect(decision).toMatchObject({ problem: { code: 'content_type_unsupported', status: 415 } })
      expect(decision.action === 'reject' && decision.problem.detail).toMatch(detail)
      expect(events).toEqual([{ type: 'rejected', code: 'content_type_unsupported' }])
      expect(store.sent).toEqual([])
    })

    test('is misuse with a `fingerprint`, which could not see it', async () => {
      const fingerprint = vi.fn(() => 'all alike')
      for (const type of ['application/json', 'multipart/form-data; boundary=x', 'image/png', null]) {
        const { send, store } = engineOnTrial({ fingerprint })
        await expect(send({ headers: [sent, ...typed(type)], body, bodyWasRead: false })).rejects.toMatchObject({
          code: 'body_not_parsed',
          message: expect.stringContaining('withoutBody((req) => …)'),
        })
        expect(store.sent).toEqual([])
      }
      expect(fingerprint).not.toHaveBeenCalled()
    })

    test('is taken with a `fingerprint` that does without', async () => {
      const fingerprint = withoutBody(({ target }: Request) => target ?? null)
      for (const type of ['application/json', 'multipart/form-data; boundary=x', 'image/png', null]) {
        const { send } = engineOnTrial({ fingerprint })
        expect(outcomeOf(await send({ headers: [sent, ...typed(type)], body, bodyWasRead: false }))).toBe('execute')
      }
    })
  })

  test.each([
    { name: 'undefined', body: undefined },
    { name: 'null', body: null },
  ])('was read into something else where it is $name: so a `fingerprint` is required', async ({ body }) => {
    for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain', null]) {
      const read = { headers: [LENGTH, ...typed(type)], body, bodyWasRead: true }
      const { send, store } = engineOnTrial()
      await expect(send(read)).rejects.toMatchObject({
        code: 'fingerprint_required',
        message: expect.stringMatching(/Set a `fingerprint\(req\)`.*req\.rawBody/),
      })
      expect(store.sent).toEqual([])
      expect(outcomeOf(await engineOnTrial({ fingerprint: () => 'its bytes' }).send(read))).toBe('execute')
    }
  })

  test.each(['application/x-www-form-urlencoded', 'text/plain'])(
    'was read into something else where a parser of Express 4 left {} for the longer %s',
    async (type) => {
      for (const sent of [LENGTH, CHUNKED]) {
        const { send } = engineOnTrial()
        const read = { headers: [sent, ...typed(type)], body: {}, bodyWasRead: true }
        await expect(send(read)).rejects.toMatchObject({ code: 'fingerprint_required' })
      }
    },
  )

  test.each<{ name: string } & Request>([
    { name: 'there is none', headers: [], body: undefined, bodyWasRead: false },
    { name: 'it has no length', headers: [['Content-Length', '0']], body: undefined, bodyWasRead: false },
    { name: 'it was read, and is {}', headers: [LENGTH], body: {}, bodyWasRead: true },
    { name: 'it was read, is JSON and {}', headers: [LENGTH, ...typed('text/x+json')], body: {}, bodyWasRead: true },
    { name: 'it was read, and was {}', headers: [['Content-Length', '2'], ...typed('text/plain')], body: {} },
    { name: 'it was made elsewhere', headers: [LENGTH], body: { amount: 1 }, bodyWasRead: false },
    { name: 'it was made elsewhere, and is []', headers: [LENGTH], body: [], bodyWasRead: false },
    { name: 'it is bytes', headers: [LENGTH], body: Buffer.alloc(0), bodyWasRead: false },
    { name: 'it is a text', headers: [LENGTH], body: '', bodyWasRead: false },
    { name: 'it is false', headers: [LENGTH], body: false, bodyWasRead: false },
  ])('is not what it is where $name', async ({ name: _, ...request }) => {
    expect(outcomeOf(await engineOnTrial().send(request))).toBe('execute')
    expect(outcomeOf(await engineOnTrial({ fingerprint: () => null }).send(request))).toBe('execute')
  })
})

describe('a multipart body', () => {
  const types = ['multipart/form-data; boundary=x', 'Multipart/Mixed', ' multipart/related']

  test.each(types)('needs a `fingerprint`: %s', async (type) => {
    const { send, store } = engineOnTrial()
    await expect(send({ headers: [['content-type', type]] })).rejects.toMatchObject({
      code: 'fingerprint_required',
      message: expect.stringContaining('fingerprint(req)'),
    })
    expect(store.sent).toEqual([])
  })

  test.each(types)('is taken with one: %s', async (type) => {
    const { send } = engineOnTrial({ fingerprint: () => 'the fields' })
    expect(outcomeOf(await send({ headers: [['Content-Type', type]] }))).toBe('execute')
  })

  test('is not what a type that only holds the word is', async () => {
    const { send } = engineOnTrial()
    expect(outcomeOf(await send({ headers: [['Content-Type', 'application/multipart/form-data']] }))).toBe('execute')
  })
})

describe('the fingerprint option', () => {
  const byAmount = { fingerprint: ({ body }: Request) => (body as { amount: number }).amount }

  test('stands for query and body; method and path count all the same', async () => {
    const { run, send } = engineOnTrial(byAmount)
    await run({ target: '/payouts?try=1', body: { amount: 1, at: 1 } })
    const again = { target: '/payouts?try=2', body: { amount: 1, at: 2 } }
    expect(outcomeOf(await send(again))).toBe('in_flight')
    expect(outcomeOf(await send({ ...again, body: { amount: 2 } }))).toBe('mismatched')
    expect(outcomeOf(await send({ ...again, target: '/refunds' }))).toBe('mismatched')
    expect(outcomeOf(await send({ ...again, method: 'PUT' }))).toBe('mismatched')
  })

  test('without it, query and body count as sent', async () => {
    const { run, send } = engineOnTrial()
    await run({ target: '/payouts?a=1&b=2' })
    expect(outcomeOf(await send({ target: '/payouts?a=1&b=2' }))).toBe('in_flight')
    expect(outcomeOf(await send({ target: '/payouts?b=2&a=1' }))).toBe('mismatched')
    expect(outcomeOf(await send({ target: '/payouts' }))).toBe('mismatched')
  })

  test.each<{ name: string; given: () => unknown; same: () => unknown; other: () => unknown }>([
    { name: 'a promise', given: async () => ['a', 1], same: async () => ['a', 1], other: async () => ['a', 2] },
    { name: 'bytes', given: () => Buffer.from([1]), same: () => new Uint8Array([1]), other: () => Buffer.from([2]) },
    { name: 'a text', given: () => 'a', same: () => 'a', other: () => 'b' },
    { name: 'null', given: () => null, same: () => null, other: () => 'null' },
    { name: 'a number', given: () => 0, same: () => -0, other: () => '0' },
  ])('may answer $name', async ({ given, same, other }) => {
    const answers = [given, same, other]
    const { run, send } = engineOnTrial({ fingerprint: () => answers.shift()?.() })
    await run()
    expect(outcomeOf(await send())).toBe('in_flight')
    expect(outcomeOf(await send())).toBe('mismatched')
  })

  test.each([
    { name: 'answers undefined', fingerprint: () => undefined, code: 'fingerprint_invalid', cause: undefined },
    { name: 'promises undefined', fingerprint: async () => undefined, code: 'fingerprint_invalid', cause: undefined },
    {
      name: 'throws',
      fingerprint: () => {
        throw new Error('boom')
      },
      code: 'fingerprint_invalid',
      cause: 'boom',
    },
    {
      name: 'rejects',
      fingerprint: async () => {
        throw new Error('boom')
      },
      code: 'fingerprint_invalid',
      cause: 'boom',
    },
    { name: 'answers a Map', fingerprint: () => new Map(), code: 'fingerprint_required', cause: undefined },
    { name: 'answers a function', fingerprint: () => () => 1, code: 'fingerprint_required', cause: undefined },
  ])('that $name is misuse', async ({ fingerprint, code, cause }) => {
    const { send, store } = engineOnTrial({ fingerprint })
    const error = await send().catch((reason: unknown) => reason)
    expect(error).toMatchObject({ name: 'IdempotencyError', code })
    expect((error as Error).message).toMatch(/what makes two.*requests the same/)
    expect(((error as Error).cause as Error | undefined)?.message).toBe(cause)
    expect(store.sent).toEqual([])
  })

  test('that answers what is too deep is 400 body_too_deep', async () => {
    const fingerprint = () => Array.from({ length: 1_001 }).reduce((inner) => [inner], 1)
    expect(outcomeOf(await engineOnTrial({ fingerprint }).send())).toBe('body_too_deep')
  })
})
