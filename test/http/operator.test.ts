import type { Answer, Store } from 'once-per-key/core'
import {
  createRequestEngine,
  type IdempotencyEvent,
  type IdempotencyOptions,
  type KnownOutcome,
} from 'once-per-key/http'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { outcomeOf, runOf, TIMES } from '../support/engine-on-trial.js'
import { mapStore } from '../support/map-store.js'
import { answer, type Request, requestFacts } from '../support/request-facts.js'

const NAME = { scope: 'acme', key: 'order-1' }
const JSON_TYPE = ['Content-Type', 'application/json; charset=utf-8']

afterEach(() => vi.useRealTimers())

/** An engine whose store's clock can be moved: past it, an owner stalls, though its process knows nothing of that. */
function operated(options: Partial<IdempotencyOptions<Request>> = {}) {
  let nowMs = 1
  const events: IdempotencyEvent[] = []
  const engine = createRequestEngine<Request>({
    store: mapStore(() => nowMs),
    scope: ({ scope = 'acme' }) => scope,
    unknownOutcome: 'refuse',
    onEvent: (event) => events.push(event),
    ...TIMES,
    ...options,
  })
  const send = (request: Request = {}) => engine.decide(requestFacts(request))
  return {
    inspect: engine.inspect,
    unknown: engine.unknown,
    resolve: engine.resolve,
    claim: engine.claim.bind(engine),
    send,
    told: (type: IdempotencyEvent['type']) => events.filter((event) => event.type === type),
    pass(ms: number) {
      nowMs += ms
    },
    /** A run whose owner stalls until its lease has lapsed. */
    async stall(request?: Request) {
      const execution = runOf(await send(request))
      nowMs += TIMES.leaseMs
      return execution
    },
  }
}

const UNKNOWN = { state: 'in-flight', attempt: 1, uncertain: false, leaseRemainingMs: 0 }
const PAID: Answer = {
  status: 201,
  statusMessage: '',
  headers: [['Content-Type', 'text/plain']],
  body: Buffer.from('paid'),
}

describe('inspect', () => {
  test('shows the record as it stands, as often as it is asked, and changes nothing', async () => {
    const { inspect, send, pass, stall } = operated()
    expect(await inspect(NAME)).toBeNull()
    await stall()
    for (let i = 0; i < 3; i++) expect(await inspect(NAME)).toMatchObject(UNKNOWN)
    expect(outcomeOf(await send())).toBe('outcome_unknown')
    pass(TIMES.retentionMs)
    expect(await inspect(NAME)).toBeNull()
  })

  test('shows an answer as it was stored, and never a token', async () => {
    const { inspect, send } = operated()
    await runOf(await send()).settle(PAID)
    const record = await inspect(NAME)
    expect(record).toMatchObject({ state: 'completed', attempt: 1, answer: PAID })
    expect(JSON.stringify(record)).not.toContain('token')
  })

  test('finds a request by its scope and key alone, and a webhook’s event by its namespace', async () => {
    const { inspect, send, claim } = operated()
    await send({ scope: 'webhook:acme', key: 'evt_1' })
    await claim(
      { namespace: 'webhook', scope: 'acme', key: 'evt_1', fingerprint: 'of the event' },
      { request: {}, isAbandoned: () => false },
    )
    expect(await inspect({ scope: 'acme', key: 'evt_1' })).toBeNull()
    const event = { scope: 'acme', key: 'evt_1', namespace: 'webhook' } as const
    expect(await inspect(event)).toMatchObject({ fingerprint: 'of the event' })
    expect(await inspect({ ...event, namespace: undefined })).toBeNull()
  })

  test('takes a key as it is: quotes that a header’s value had were taken off, and others belong to it', async () => {
    const { inspect, send } = operated()
    await send({ key: '"order-1"' })
    expect(await inspect(NAME)).not.toBeNull()
    expect(await inspect({ ...NAME, key: '"order-1"' })).toBeNull()
  })
})

describe.each(['rerun', 'refuse'] as const)('resolve, where unknown outcomes are to %s', (unknownOutcome) => {
  const open = () => operated({ unknownOutcome })

  test('as failed: the key is free, and the next run is told that one failed', async () => {
    const { resolve, stall, send, told } = open()
    await stall()
    expect(await resolve({ ...NAME, attempt: 1 }, 'failed')).toEqual({ ok: true })
    expect(told('resolved')).toEqual([{ type: 'resolved', ...NAME, attempt: 1, as: 'failed' }])
    const corrected = runOf(await send({ body: { amount: 101 } }))
    expect([corrected.context.attempt, corrected.context.previousOutcome]).toEqual([2, 'failed'])
  })

  test('as completed: retries are given the answer, and another request is refused', async () => {
    const { resolve, stall, send, told } = open()
    await stall()
    const completed = { status: 201, body: { id: 'po_1' }, headers: { Location: '/payouts/po_1' } }
    expect(await resolve({ ...NAME, attempt: 1 }, { completed })).toEqual({ ok: true })
    expect(told('resolved')).toEqual([{ type: 'resolved', ...NAME, attempt: 1, as: 'completed' }])
    const headers = [JSON_TYPE, ['Location', '/payouts/po_1'], ['Idempotent-Replayed', 'true']]
    const answer = { status: 201, statusMessage: '', headers, body: Buffer.from('{"id":"po_1"}') }
    for (let i = 0; i < 2; i++) expect(await send()).toEqual({ action: 'replay', answer })
    expect(outcomeOf(await send({ body: { amount: 101 } }))).toBe('mismatched')
  })

  test('as completed without an answer: it is never run again, and retries are told so', async () => {
    const { resolve, stall, send } = open()
    await stall()
    await resolve({ ...NAME, attempt: 1 }, 'completed')
    expect(outcomeOf(await send())).toBe('answer_not_kept')
  })

  test('a failure after mayHaveEffect() can be resolved too', async () => {
    const { resolve, send, inspect } = open()
    const execution = runOf(await send())
    execution.context.mayHaveEffect()
    await execution.fail()
    expect(await inspect(NAME)).toMatchObject({ state: 'failed', uncertain: true, attempt: 1 })
    expect(await resolve({ ...NAME, attempt: 1 }, 'failed')).toEqual({ ok: true })
    expect(runOf(await send()).context.previousOutcome).toBe('failed')
  })

  test('the owner that was lost wakes up too late: its client is given what the record says', async () => {
    const { resolve, stall, send } = open()
    const late = await stall()
    await resolve({ ...NAME, attempt: 1 }, { completed: { status: 201, body: 'found out' } })
    const settled = await late.settle(PAID)
    expect(settled).toMatchObject({ action: 'replay', answer: { body: Buffer.from('found out') } })
    expect(late.context.signal.aborted).toBe(true)
    expect(await send()).toMatchObject({ action: 'replay', answer: { body: Buffer.from('found out') } })
  })

  test('the owner that was lost wakes up behind a resolution as failed: its success is not sent', async () => {
    const { resolve, stall, send } = open()
    const late = await stall()
    await resolve({ ...NAME, attempt: 1 }, 'failed')
    expect(outcomeOf(await late.settle(PAID))).toBe('in_flight')
    expect(runOf(await send()).context.previousOutcome).toBe('failed')
  })

  test('what is known stays as it is, and is shown', async () => {
    const { resolve, send, told } = open()
    const attempt = { ...NAME, attempt: 1 }
    const execution = runOf(await send())
    const live = { state: 'in-flight', leaseRemainingMs: TIMES.leaseMs }
    expect(await resolve(attempt, 'failed')).toMatchObject({ ok: false, record: live })
    await execution.settle(PAID)
    expect(await resolve(attempt, 'failed')).toMatchObject({ ok: false, record: { state: 'completed', answer: PAID } })
    expect(await resolve({ ...attempt, key: 'none' }, 'completed')).toEqual({ ok: false, record: null })
    await runOf(await send({ key: 'failed' })).settle(answer(422))
    const failed = { state: 'failed', uncertain: false }
    expect(await resolve({ ...attempt, key: 'failed' }, 'completed')).toMatchObject({ ok: false, record: failed })
    expect(told('resolved')).toEqual([])
  })

  test('of two operators at once, the first decides, and the other is shown what', async () => {
    const { resolve, stall, send } = open()
    await stall()
    const attempt = { ...NAME, attempt: 1 }
    const done = await Promise.all([resolve(attempt, { completed: { status: 200 } }), resolve(attempt, 'failed')])
    expect(done).toMatchObject([{ ok: true }, { ok: false, record: { state: 'completed', attempt: 1 } }])
    expect(outcomeOf(await send())).toBe('replay')
  })

  test('a webhook’s event is resolved by its namespace, and a request of the same name is left alone', async () => {
    const { resolve, claim, inspect, stall } = open()
    await claim(
      { namespace: 'webhook', ...NAME, fingerprint: 'of the event' },
      { request: {}, isAbandoned: () => false },
    )
    await stall()
    expect(await resolve({ ...NAME, namespace: 'webhook', attempt: 1 }, 'failed')).toEqual({ ok: true })
    expect(await inspect(NAME)).toMatchObject(UNKNOWN)
  })
})

describe('unknown', () => {
  test('comes across everything whose outcome is unknown, by its name, of every namespace, and changes nothing', async () => {
    const { unknown, claim, send, stall } = operated()
    await stall({ scope: 'a:b', key: 'ü %' })
    await send({ key: 'runs' })
    const event = { namespace: 'webhook', scope: 'payments', key: 'evt_1', fingerprint: 'f' }
    const run = runOf(await claim(event, requestFacts()))
    run.context.mayHaveEffect()
    await run.fail()
    const due = [
      { scope: 'a:b', key: 'ü %', record: expect.objectContaining(UNKNOWN) },
      { namespace: 'webhook', scope: 'payments', key: 'evt_1', record: expect.objectContaining({ state: 'failed' }) },
    ].map((each) => ({ ...each, retentionRemainingMs: expect.any(Number) }))
    expect(await allOf(unknown())).toEqual(due)
    expect(await allOf(unknown())).toEqual(due)
  })

  test('asks a step after the other, and no further than it is read', async () => {
    const steps: (string | null)[] = []
    const listed = (key: string) => ({
      key,
      record: { state: 'failed', fingerprint: 'f', attempt: 1, uncertain: true } as const,
      retentionRemainingMs: 1_000,
    })
    const list = async (from: string | null) => {
      steps.push(from)
      const step = from === null ? 1 : Number(from)
      return { records: step === 2 ? [] : [listed(`acme:${step}`), listed('no name of ours')], next: `${step + 1}` }
    }
    const { unknown } = operated({ store: { ...mapStore(() => 1), list } })
    const keys: string[] = []
    for await (const { key } of unknown()) if (keys.push(key) === 2) break
    expect([keys, steps]).toEqual([
      ['1', '3'],
      [null, '2', '3'],
    ])
  })

  test('of a store without `list` tells which command to add', async () => {
    const { list: _, ...store } = mapStore(() => 1)
    const error = expect.objectContaining({
      code: 'command_missing',
      message: expect.stringContaining('`listedIfUnknown`'),
    })
    await expect(allOf(operated({ store: store as Store }).unknown())).rejects.toEqual(error)
  })

  test.each([
    ['fails', () => Promise.reject(new Error('down'))],
    [
      'throws at once',
      () => {
        throw new Error('down')
      },
    ],
    ['answers what is no step', async () => ({ records: [{ key: 'a:b' }], next: null }) as never],
    ['answers no cursor', async () => ({ records: [] }) as never],
  ])('of a store that %s rejects, and is no event of a record', async (_name, list) => {
    const { unknown, told } = operated({ store: { ...mapStore(() => 1), list } })
    await expect(allOf(unknown())).rejects.toMatchObject({ code: 'store_failed' })
    expect(told('store_failed')).toEqual([])
  })

  async function allOf<Each>(found: AsyncIterable<Each>): Promise<Each[]> {
    const all: Each[] = []
    for await (const each of found) all.push(each)
    return all
  }
})

test('an attempt that came later is not resolved by what was seen of the one before', async () => {
  const { resolve, stall, inspect, told } = operated({ unknownOutcome: 'rerun' })
  await stall()
  await stall() // It takes over, and stalls as well.
  const refused = { ok: false, record: { state: 'in-flight', attempt: 2, uncertain: true } }
  expect(await resolve({ ...NAME, attempt: 1 }, 'failed')).toMatchObject(refused)
  expect(told('resolved')).toEqual([])
  expect(await inspect(NAME)).toMatchObject({ state: 'in-flight', attempt: 2 })
})

test('a resolved record is kept for the retention, and at least as long as it was to be', async () => {
  for (const as of ['failed', 'completed'] as const) {
    const { resolve, stall, inspect, pass } = operated()
    await stall()
    await resolve({ ...NAME, attempt: 1 }, as)
    pass(TIMES.retentionMs - 1)
    expect(await inspect(NAME)).toMatchObject({ state: as })
    pass(1)
    expect(await inspect(NAME)).toBeNull()
  }
})

describe('an answer that an operator writes', () => {
  const bytes = Uint8Array.of(0, 159, 146, 150)

  test.each<[string, KnownOutcome, Partial<Answer>]>([
    ['a status alone', { completed: { status: 204 } }, { status: 204, headers: [], body: Buffer.alloc(0) }],
    ['a text', { completed: { status: 200, body: 'größer' } }, { headers: [], body: Buffer.from('größer') }],
    ['bytes', { completed: { status: 200, body: bytes } }, { headers: [], body: Buffer.from(bytes) }],
    [
      'an array',
      { completed: { status: 200, body: [1] } },
      { headers: [JSON_TYPE] as never, body: Buffer.from('[1]') },
    ],
    [
      'a JSON of another type',
      { completed: { status: 200, body: {}, headers: { 'content-type': 'application/hal+json' } } },
      { headers: [['content-type', 'application/hal+json']], body: Buffer.from('{}') },
    ],
    [
      'headers, of which some are lists, and some are not for a record',
      {
        completed: {
          status: 200,
          headers: { Link: ['</a>', '</b>'], 'Content-Length': '7', Date: 'now', Connection: 'close', 'X-A': 'é' },
        },
      },
      {
        headers: [
          ['Link', '</a>'],
          ['Link', '</b>'],
          ['X-A', 'é'],
        ],
      },
    ],
  ])('%s', async (_name, as, due) => {
    const { resolve, stall, inspect } = operated()
    await stall()
    expect(await resolve({ ...NAME, attempt: 1 }, as)).toEqual({ ok: true })
    const record = await inspect(NAME)
    const answer = record?.state === 'completed' ? record.answer : null
    expect({ ...answer, body: answer?.body && Buffer.from(answer.body) }).toMatchObject({ statusMessage: '', ...due })
  })

  test('keeps the headers that `keepHeader` keeps', async () => {
    const { resolve, stall, inspect } = operated({ keepHeader: (name) => name === 'x-kept' })
    await stall()
    await resolve({ ...NAME, attempt: 1 }, { completed: { status: 200, body: {}, headers: { 'X-Kept': '1' } } })
    expect(await inspect(NAME)).toMatchObject({ answer: { headers: [['X-Kept', '1']] } })
  })
})

describe('what is no name, no attempt or no outcome is refused, before anything is sent, and named without its text', () => {
  const cyclic: Record<string, unknown> = {}
  cyclic.itself = cyclic
  const SECRET = 'sk_secret\n'

  test.each<[string, unknown, unknown, RegExp]>([
    ['no name', null, 'failed', /the record: expected { scope, key }; seen: null/],
    [
      'no scope',
      { key: 'k', attempt: 1 },
      'failed',
      /scope: expected what the option `scope` returns; seen: undefined/,
    ],
    ['a scope by accident', { scope: 'undefined', key: 'k', attempt: 1 }, 'failed', /scope: .* the word "undefined"/],
    ['a scope that is a number', { scope: 7, key: 'k', attempt: 1 }, 'failed', /scope: .* a number/],
    ['no key', { scope: 'acme', attempt: 1 }, 'failed', /key: expected an idempotency key, but it is undefined/],
    ['an empty key', { scope: 'acme', key: '', attempt: 1 }, 'failed', /key: .* it is empty/],
    ['a long key', { scope: 'acme', key: 'k'.repeat(256), attempt: 1 }, 'failed', /key: .* longer than 255 characters/],
    ['a control character', { scope: 'acme', key: SECRET, attempt: 1 }, 'failed', /key: .* a control character/],
    [
      'a namespace with a colon',
      { ...NAME, namespace: 'a:b', attempt: 1 },
      'failed',
      /namespace: expected a word without a colon/,
    ],
    ['a name misspelt', { ...NAME, atempt: 1 }, 'failed', /atempt: did you mean attempt\?/],
    ['no attempt', NAME, 'failed', /attempt: expected an integer from 0 .* seen: undefined/],
    ['an attempt that is no number', { ...NAME, attempt: '1' }, 'failed', /attempt: expected an integer/],
    [
      'no outcome',
      { ...NAME, attempt: 1 },
      undefined,
      /the outcome: expected 'failed', 'completed', 'rerun' or { completed: /,
    ],
    ['another outcome', { ...NAME, attempt: 1 }, 'done', /the outcome: expected/],
    ['no answer', { ...NAME, attempt: 1 }, { completed: null }, /the outcome: expected/],
    ['no status', { ...NAME, attempt: 1 }, { completed: {} }, /status: expected a success .* seen: undefined/],
    ['a failure', { ...NAME, attempt: 1 }, { completed: { status: 404 } }, /status: .* as 'failed'; seen: 404/],
    [
      'a redirect of the request',
      { ...NAME, attempt: 1 },
      { completed: { status: 307 } },
      /status: expected a success/,
    ],
    [
      'no body that JSON holds',
      { ...NAME, attempt: 1 },
      { completed: { status: 200, body: cyclic } },
      /body: expected/,
    ],
    [
      'a body that is null',
      { ...NAME, attempt: 1 },
      { completed: { status: 200, body: null } },
      /body: .* 'completed'/,
    ],
    ['a body that is a number', { ...NAME, attempt: 1 }, { completed: { status: 200, body: 7 } }, /body: expected/],
    ['a body too long', { ...NAME, attempt: 1 }, { completed: { status: 200, body: 'x'.repeat(11) } }, /most 10 bytes/],
    [
      'a header with a line break',
      { ...NAME, attempt: 1 },
      { completed: { status: 200, headers: { 'X-A': SECRET } } },
      /headers: expected an object of headers/,
    ],
    [
      'an answer’s member misspelt',
      { ...NAME, attempt: 1 },
      { completed: { status: 200, bdy: '' } },
      /bdy: did you mean body\?/,
    ],
  ])('%s', async (_name, name, as, says) => {
    const store = mapStore(() => 1)
    const sent = vi.spyOn(store, 'resolve')
    const { resolve } = operated({ store, maxAnswerBytes: 10 })
    const error = await resolve(name as never, as as never).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'arguments_invalid', message: expect.stringMatching(says) })
    expect(String(error)).not.toContain('sk_secret')
    expect(sent).not.toHaveBeenCalled()
  })

  test('all mistakes at once', async () => {
    const { resolve, inspect } = operated()
    const refused = resolve({ scope: '', key: '', attempt: -1 }, { completed: { status: 500 } })
    await expect(refused).rejects.toThrow(
      /resolve\(\).*\n {2}- attempt: .*\n {2}- scope: .*\n {2}- key: .*\n {2}- status: /,
    )
    await expect(inspect({ scope: '', key: '' })).rejects.toThrow(/inspect\(\).*\n {2}- scope: .*\n {2}- key: /)
  })
})

describe('where the store', () => {
  const storeThat = (changes: Partial<Store>) => operated({ store: { ...mapStore(() => 1), ...changes } })
  const attempt = { ...NAME, attempt: 1 }

  test('has four commands, an operator is told which to add', async () => {
    const { begin, renew, complete, release } = mapStore(() => 1)
    const { inspect, resolve } = operated({ store: { begin, renew, complete, release } })
    await expect(inspect(NAME)).rejects.toMatchObject({
      code: 'command_missing',
      message: expect.stringMatching(/`machine\.inspect`/),
    })
    await expect(resolve(attempt, 'failed')).rejects.toMatchObject({
      code: 'command_missing',
      message: /`machine\.resolve`/,
    })
  })

  test('fails, an operator is told in the store’s words, and so are the events', async () => {
    const fail = () =>
      Promise.reject(Object.assign(new Error('READONLY replica'), { command: { args: ['an answer'] } }))
    const { inspect, resolve, told } = storeThat({ inspect: fail, resolve: fail })
    const seen = await inspect(NAME).catch((thrown: unknown) => thrown)
    expect(seen).toMatchObject({
      code: 'store_failed',
      message: expect.stringMatching(/^The store failed: READONLY replica\. Nothing changed\. See /),
    })
    expect((seen as Error).cause).toEqual({ name: 'Error', message: 'READONLY replica' })
    await expect(resolve(attempt, 'failed')).rejects.toMatchObject({
      code: 'store_failed',
      message: expect.stringMatching(/is unknown/),
    })
    expect(told('store_failed')).toMatchObject([
      { ...NAME, command: 'inspect' },
      { ...NAME, command: 'resolve' },
    ])
    expect(told('resolved')).toEqual([])
  })

  test('throws at once, or answers what is no reply, it has failed', async () => {
    const throwAtOnce = () => {
      throw new Error('not connected')
    }
    for (const wrong of [throwAtOnce, async () => undefined as never, async () => ({}) as never]) {
      const { inspect, resolve } = storeThat({ inspect: wrong, resolve: wrong })
      await expect(inspect(NAME)).rejects.toMatchObject({ code: 'store_failed' })
      await expect(resolve(attempt, 'failed')).rejects.toMatchObject({ code: 'store_failed' })
    }
  })

  test('hangs, an operator waits no longer than storeTimeoutMs', async () => {
    vi.useFakeTimers()
    const hang = () => new Promise<never>(() => {})
    const { inspect, resolve } = storeThat({ inspect: hang, resolve: hang })
    const failed = Promise.all([
      expect(inspect(NAME)).rejects.toMatchObject({ code: 'store_failed' }),
      expect(resolve(attempt, 'failed')).rejects.toMatchObject({ code: 'store_failed' }),
    ])
    await vi.advanceTimersByTimeAsync(TIMES.storeTimeoutMs)
    await failed
  })
})
