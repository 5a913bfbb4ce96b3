import express, { type Express, type Request, type RequestHandler } from 'express'
import { agenticCommerce, idempotency, ietfDraft, ietfDraft07, type Profile, universalCommerce } from 'once-per-key'
import { buildStorageKey, parseStorageKey } from 'once-per-key/core'
import { createRequestEngine, type IdempotencyOptions, singleTenant } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { keepsBytes } from '../../examples/recipes/webhooks/keeps-bytes.js'
import { resolveRequestOptions } from '../../src/http/options/option-rules.js'
import { listen } from '../support/bindings.js'
import { engineOnTrial, outcomeOf } from '../support/engine-on-trial.js'
import { answer } from '../support/request-facts.js'

const store = new MemoryStore()
const DAY_MS = 86_400_000
const PROFILES = [ietfDraft07, agenticCommerce, universalCommerce]

const resolved = (options: Partial<IdempotencyOptions>) =>
  resolveRequestOptions({ store, scope: singleTenant, ...options })
const mistakesOf = (options: object): string => {
  try {
    createRequestEngine({ store, scope: singleTenant, ...options })
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

describe('a profile', () => {
  test('is a preset of options', () => {
    expect(resolved({ profile: ietfDraft07 })).toMatchObject({ problemStatuses: { mismatched: 422 }, required: false })
    expect(resolved({ profile: agenticCommerce })).toMatchObject({
      required: true,
      methods: ['POST'],
      problemStatuses: { mismatched: 422 },
    })
    expect(resolved({ profile: universalCommerce })).toMatchObject({
      retentionMs: 2 * DAY_MS,
      unknownRetentionMs: 2 * DAY_MS,
      problemStatuses: {},
    })
  })

  test('yields to each single option, and of the statuses to each code', () => {
    const { retentionMs, methods, problemStatuses } = resolved({
      profile: agenticCommerce,
      retentionMs: 3 * DAY_MS,
      methods: ['POST', 'PUT'],
      problemStatuses: { store_unavailable: 500 },
    })
    expect({ retentionMs, methods }).toEqual({ retentionMs: 3 * DAY_MS, methods: ['POST', 'PUT'] })
    expect(problemStatuses).toEqual({ mismatched: 422, store_unavailable: 500 })
    expect(resolved({ profile: ietfDraft07, problemStatuses: { mismatched: 409 } })).toMatchObject({
      problemStatuses: { mismatched: 409, in_flight: 409 },
    })
    expect(resolved({ profile: ietfDraft07, problemStatuses: ietfDraft })).toMatchObject({ problemStatuses: ietfDraft })
  })

  test('is known by its name, so that one of another copy of the library counts', () => {
    const copied = JSON.parse(JSON.stringify(agenticCommerce)) as Profile
    expect(resolved({ profile: copied })).toMatchObject({ keyPerPath: true, echoesKey: true })
  })

  test.each(['ietfDraft07', 'agenticCommerce', null, {}, { name: 'toString' }, () => {}])('is not %o', (profile) => {
    expect(mistakesOf({ profile })).toContain('profile: expected ietfDraft07, agenticCommerce or universalCommerce')
  })

  test.each<[Profile, Partial<IdempotencyOptions>, string]>([
    [ietfDraft07, { header: 'X-Key' }, 'header: the profile ietfDraft07 needs Idempotency-Key'],
    [agenticCommerce, { header: 'X-Key' }, 'header: the profile agenticCommerce needs Idempotency-Key'],
    [agenticCommerce, { required: false }, 'required: the profile agenticCommerce needs true'],
    [agenticCommerce, { methods: ['PUT'] }, 'methods: the profile agenticCommerce needs methods with POST'],
    [agenticCommerce, { unknownOutcome: 'refuse' }, "unknownOutcome: the profile agenticCommerce needs 'rerun'"],
    [agenticCommerce, { retentionMs: DAY_MS - 1 }, 'retentionMs: the profile agenticCommerce needs at least 86400000'],
    [agenticCommerce, { problemStatuses: { key_missing: 422 } }, 'the profile agenticCommerce needs key_missing: 400'],
    [agenticCommerce, { problemStatuses: { mismatched: 400 } }, 'needs mismatched: 422 or 409 (§6.4)'],
    [agenticCommerce, { problemStatuses: { in_flight: 425 } }, 'the profile agenticCommerce needs in_flight: 409'],
    [universalCommerce, { header: 'X-Key' }, 'header: the profile universalCommerce needs Idempotency-Key'],
    [universalCommerce, { retentionMs: DAY_MS - 1 }, 'retentionMs: the profile universalCommerce needs at least'],
    [universalCommerce, { problemStatuses: ietfDraft }, 'problemStatuses: the profile universalCommerce needs'],
    [universalCommerce, { problemStatuses: { store_unavailable: 500 } }, 'needs store_unavailable: 503'],
    [
      universalCommerce,
      { storeFailure: 'runUnprotected' },
      "storeFailure: the profile universalCommerce needs 'refuse'",
    ],
  ])('$name cannot be kept with $1', (profile, options, mistake) => {
    expect(mistakesOf({ profile, ...options })).toContain(mistake)
    expect(mistakesOf(options)).toBe('') // Without the profile it is none.
  })

  test('tells a contradiction beside all other mistakes', () => {
    const message = mistakesOf({ profile: agenticCommerce, required: false, retentionMs: 1, onEvents: 1, header: 17 })
    expect(message.split('\n').map((line) => line.split(':')[0])).toEqual([
      'The options of idempotency() are invalid',
      '  - onEvents',
      '  - header',
      '  - retentionMs',
      '  - header',
      '  - required',
      '  - retentionMs',
      'See once-per-key/docs/errors.md#options_invalid',
    ])
  })

  test.each(PROFILES)('$name is exported by each entry that takes options', async ({ name }) => {
    for (const entry of ['', '/fetch', '/hono', '/http', '/fastify', '/koa', '/nest']) {
      expect(await import(`once-per-key${entry}`), entry).toHaveProperty(name)
    }
  })
})

describe('`documentation`', () => {
  const documentation = 'https://developer.example.com/idempotency'

  test.each(['', 'idempotency.html', 'ftp://a/b', 'https://a/b c', 'https://a/>', 17])('is not %o', (wrong) => {
    expect(mistakesOf({ documentation: wrong })).toContain('documentation: expected an absolute URL of a page')
  })

  test('is the type of each problem, and a link; the code tells them apart', async () => {
    const { send, engine } = engineOnTrial({ documentation, required: true })
    const decision = await send({ key: null })
    if (decision.action !== 'reject') throw new Error(outcomeOf(decision))
    const { headers, body } = engine.answerFor(decision, {})
    expect(headers).toContainEqual(['Link', `<${documentation}>; rel="describedby"`])
    expect(JSON.parse(`${body}`)).toMatchObject({ type: documentation, code: 'key_missing', status: 400 })
  })

  test('is a link also where the problem has another form', async () => {
    const { send, engine } = engineOnTrial({
      documentation,
      required: true,
      renderProblem: ({ type }) => ({ contentType: 'text/plain', body: type }),
    })
    const decision = await send({ key: null })
    if (decision.action !== 'reject') throw new Error(outcomeOf(decision))
    const { headers, body } = engine.answerFor(decision, {})
    expect(headers).toContainEqual(['Link', `<${documentation}>; rel="describedby"`])
    expect(`${body}`).toBe(documentation)
  })
})

describe('`keepFailure`', () => {
  const keepFailure = () => true
  const refused = answer(402, '{"error":"declined"}')

  test('completes the record with the failure, and tells what was stored', async () => {
    const { run, send, events } = engineOnTrial({ keepFailure })
    const first = await run()
    expect(await first.settle(refused)).toEqual({ action: 'send' })
    expect(first.context.signal.aborted).toBe(true)
    expect(await send()).toMatchObject({ action: 'replay', answer: { status: 402, body: refused.body } })
    expect(outcomeOf(await send({ body: { amount: 7 } }))).toBe('mismatched')
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'replayed', 'mismatched'])
    expect(events[1]).toMatchObject({ status: 402, answerKept: true })
  })

  test('also where the outcome would be unknown: nothing runs again', async () => {
    const { run, send } = engineOnTrial({ keepFailure })
    const first = await run()
    first.context.mayHaveEffect()
    await first.settle(refused)
    expect(await send()).toMatchObject({ action: 'replay', answer: { status: 402 } })
  })

  test.each([500, 503, 599])('never with a status of %i, whose outcome is unknown', async (status) => {
    const { run } = engineOnTrial({ keepFailure })
    await (await run()).settle(answer(status))
    expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'unknown' })
  })

  test('never without a body that is kept, which no retry could get', async () => {
    const { run } = engineOnTrial({ keepFailure })
    await (await run()).settle({ ...refused, body: null })
    expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
  })

  test('never for a run that ended without an answer', async () => {
    const { run } = engineOnTrial({ keepFailure })
    await (await run()).fail()
    expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'unknown' })
  })

  test('is stored before it is sent, as a success is', async () => {
    const fails = async (): Promise<never> => {
      throw new Error('The store is down.')
    }
    const sending = engineOnTrial({ keepFailure })
    sending.store.next('complete', fails)
    expect(await (await sending.run()).settle(refused)).toEqual({ action: 'send' })
    const withholding = engineOnTrial({ keepFailure, unconfirmedSuccess: 'withhold' })
    withholding.store.next('complete', fails)
    expect(outcomeOf(await (await withholding.run()).settle(refused))).toBe('store_unavailable')
  })

  test('is asked for each failure, with the answer and the request, after isSuccess', async () => {
    const { run, send } = engineOnTrial({
      isSuccess: ({ status }) => status === 404,
      keepFailure: ({ status }, { key }) => status === 402 && key === 'kept',
    })
    await (await run({ key: 'kept' })).settle(refused)
    await (await run({ key: 'other' })).settle(refused)
    await (await run({ key: 'none' })).settle(answer(404))
    expect((await send({ key: 'kept' })).action).toBe('replay')
    expect((await send({ key: 'other' })).action).toBe('execute')
    expect((await send({ key: 'none' })).action).toBe('replay')
  })

  test('that fails keeps nothing, with an event', async () => {
    const { run, types } = engineOnTrial({ keepFailure: () => undefined as unknown as boolean })
    await (await run()).settle(refused)
    expect((await run()).context).toMatchObject({ attempt: 2, previousOutcome: 'failed' })
    expect(types()).toContain('option_failed')
  })
})

describe('a key that belongs to its path', () => {
  const perPath = { profile: universalCommerce }

  test('names another operation on another path; the query is part of the request, not of the name', async () => {
    const { run, send } = engineOnTrial({ ...perPath, retentionMs: 2 * DAY_MS })
    await (await run({ target: '/checkout-sessions?a=1' })).settle(answer())
    expect((await send({ target: '/checkout-sessions/1/complete' })).action).toBe('execute')
    expect((await send({ target: '/checkout-sessions?a=1' })).action).toBe('replay')
    expect(outcomeOf(await send({ target: '/checkout-sessions?a=2' }))).toBe('mismatched')
  })

  test('is the handler’s key all the same, and derives other keys on other paths', async () => {
    const { run } = engineOnTrial({ ...perPath, retentionMs: 2 * DAY_MS })
    const [one, two] = [await run({ target: '/a' }), await run({ target: '/b' })]
    expect([one.context.key, two.context.key]).toEqual(['order-1', 'order-1'])
    expect(one.context.deriveKey('bank')).not.toBe(two.context.deriveKey('bank'))
  })

  test('is found by operators with the path', async () => {
    const { run, engine } = engineOnTrial({ ...perPath, retentionMs: 2 * DAY_MS, store: new MemoryStore() })
    await (await run({ target: '/a:b/%2F?q' })).fail()
    const name = { scope: 'acme', key: 'order-1', path: '/a:b/%2F' }
    expect(await engine.inspect({ scope: 'acme', key: 'order-1' })).toBeNull()
    expect(await engine.inspect(name)).toMatchObject({ state: 'failed', uncertain: true })
    const unknown = []
    for await (const found of engine.unknown()) unknown.push(found)
    expect(unknown).toMatchObject([name])
    expect(await engine.resolve({ ...name, attempt: 1 }, 'failed')).toEqual({ ok: true })
    await expect(engine.inspect({ ...name, path: 'a' })).rejects.toMatchObject({ code: 'arguments_invalid' })
  })

  test('has a storage key of its own, from which its name is read', () => {
    const names = [
      { scope: 'a', key: 'k' },
      { scope: 'a', key: 'k', path: '/x:y/%0A?é' },
      { namespace: 'n', scope: 'a', key: 'k', path: '/' },
    ]
    expect(names.map((name) => parseStorageKey(buildStorageKey(name)))).toEqual(names)
    expect(new Set(names.map((name) => buildStorageKey(name))).size).toBe(names.length)
  })
})

/** An application behind a parser that keeps the bytes; all that is sent to it has one key. */
async function served(application: Express) {
  const { port, close } = await listen(application)
  onTestFinished(close)
  return async (path: string, body: string | null, more: Record<string, string> = {}) => {
    const headers = {
      'Idempotency-Key': 'order-1',
      ...(body !== null && { 'Content-Type': 'application/json' }),
      ...more,
    }
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body })
    const header = (name: string) => response.headers.get(name)
    return { status: response.status, replayed: header('Idempotent-Replayed'), requestId: header('Request-Id') }
  }
}

describe('the Agentic Commerce Protocol', () => {
  const once = () => idempotency({ store: new MemoryStore(), scope: singleTenant, profile: agenticCommerce })
  const echo: RequestHandler = (req, res, next) => {
    res.set('Request-Id', req.get('Request-Id'))
    next()
  }
  const paid: RequestHandler = (_req, res) => void res.json({})

  test('§3: a Request-Id is echoed', async () => {
    const send = await served(express().use(echo, keepsBytes, once(), paid))
    const sent = async (body: string, requestId: string) => send('/', body, { 'Request-Id': requestId })
    expect(await sent('{}', 'a')).toEqual({ status: 200, replayed: null, requestId: 'a' })
    expect(await sent('{}', 'b')).toEqual({ status: 200, replayed: 'true', requestId: 'b' })
    expect(await sent('[]', 'c')).toEqual({ status: 422, replayed: null, requestId: 'c' })
  })

  test('§3: a Request-Id that the handler sets is part of its answer', async () => {
    const send = await served(express().use(keepsBytes, once(), echo, paid))
    for (const requestId of ['a', 'b'])
      expect(await send('/', '{}', { 'Request-Id': requestId })).toMatchObject({ requestId: 'a' })
  })
})

describe('the Universal Commerce Protocol', () => {
  test('payload matching: by the bytes of the body, where they are the fingerprint', async () => {
    const once = idempotency<Request & { rawBody?: Uint8Array }>({
      store: new MemoryStore(),
      scope: singleTenant,
      profile: universalCommerce,
      fingerprint: (req) => req.rawBody ?? null,
    })
    const send = await served(express().use(keepsBytes, once, (_req, res) => void res.json({})))
    const sessions = '/checkout-sessions'
    expect(await send(sessions, '{"quantity":1}')).toMatchObject({ status: 200, replayed: null })
    expect(await send(sessions, '{"quantity":1}')).toMatchObject({ status: 200, replayed: 'true' })
    expect(await send(sessions, '{"quantity": 1}')).toMatchObject({ status: 409 })
    const cancel = `${sessions}/1/cancel` // An operation without a body, and so without a digest of it.
    expect(await send(cancel, null)).toMatchObject({ status: 200, replayed: null })
    expect(await send(cancel, null)).toMatchObject({ status: 200, replayed: 'true' })
  })
})
