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
      expect((await run({ key: null, headers: [[name, name]] })).key).toBe(name)
    }
  })

  test('by the header that the options name, and by no other', async () => {
    const { run, send } = engineOnTrial({ header: 'X-Request-Id' })
    expect((await run({ key: 'no', headers: [['x-request-id', 'yes']] })).key).toBe('yes')
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
      message: expect.stringContaining('must answer true or false'),
    })
    expect(store.sent).toEqual([])
  })
})

describe('a body that was sent but not parsed', () => {
  const LENGTH = ['Content-Length', '17'] as const
  const CHUNKED = ['Transfer-Encoding', 'chunked'] as const

  test.each([
    { name: 'a length, as Express 5 leaves it', headers: [LENGTH], body: undefined },
    { name: 'a length, as Express 4 leaves it', headers: [LENGTH], body: {} },
    { name: 'a length, and null', headers: [LENGTH], body: null },
    { name: 'a transfer encoding', headers: [CHUNKED], body: undefined },
    { name: 'a transfer encoding, and {}', headers: [CHUNKED], body: {} },
  ])('is misuse: $name', async ({ headers, body }) => {
    const { send, store } = engineOnTrial()
    await expect(send({ headers, body, bodyWasRead: false })).rejects.toMatchObject({
      code: 'body_not_parsed',
      message: expect.stringMatching(/Mount the parser.*express\.json\(\)/),
    })
    expect(store.sent).toEqual([])
  })

  test.each<{ name: string } & Request>([
    { name: 'there is none', headers: [], body: undefined, bodyWasRead: false },
    { name: 'it has no length', headers: [['Content-Length', '0']], body: undefined, bodyWasRead: false },
    { name: 'it was read, and is {}', headers: [LENGTH], body: {}, bodyWasRead: true },
    { name: 'it was made elsewhere', headers: [LENGTH], body: { amount: 1 }, bodyWasRead: false },
    { name: 'it was made elsewhere, and is []', headers: [LENGTH], body: [], bodyWasRead: false },
    { name: 'it is bytes', headers: [LENGTH], body: Buffer.alloc(0), bodyWasRead: false },
    { name: 'it is a text', headers: [LENGTH], body: '', bodyWasRead: false },
    { name: 'it is false', headers: [LENGTH], body: false, bodyWasRead: false },
  ])('is not what it is where $name', async ({ name: _, ...request }) => {
    expect(outcomeOf(await engineOnTrial().send(request))).toBe('execute')
  })

  test('is not asked about where `fingerprint` stands for it', async () => {
    const { send } = engineOnTrial({ fingerprint: () => null })
    expect(outcomeOf(await send({ headers: [LENGTH], body: undefined, bodyWasRead: false }))).toBe('execute')
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
