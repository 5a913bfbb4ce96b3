import { bodyField, createRequestEngine, type IdempotencyOptions } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { resolveRequestOptions } from '../../src/http/options/option-rules.js'

const store = new MemoryStore()
const scope = () => 'acme'

function messageOf(options: unknown): string {
  try {
    createRequestEngine(options as IdempotencyOptions)
  } catch (error) {
    expect(error).toMatchObject({ name: 'IdempotencyError', code: 'options_invalid' })
    return (error as Error).message
  }
  return ''
}

test('the defaults are those of the contract', () => {
  expect(resolveRequestOptions({ store, scope })).toEqual({
    store,
    scope,
    header: 'Idempotency-Key',
    required: false,
    methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
    leaseMs: 30_000,
    maxRunMs: 900_000,
    maxStepBytes: 65_536,
    retentionMs: 86_400_000,
    clockSkewMs: 300_000,
    inFlightWaitMs: 0,
    retryAfterMs: 1_000,
    unknownOutcome: 'rerun',
    effects: 'assumed',
    unknownRetentionMs: 86_400_000,
    unconfirmedSuccess: 'send',
    storeTimeoutMs: 2_000,
    storeFailure: 'refuse',
    maxAnswerBytes: 1_048_576,
    problemStatuses: {},
    keyPerPath: false,
    echoesKey: false,
  })
})

test('an option that is undefined is as if it were not given', () => {
  const options = {
    store,
    scope,
    leaseMs: undefined,
    methods: undefined,
    skip: undefined,
  } as unknown as IdempotencyOptions
  expect(resolveRequestOptions(options)).toEqual(resolveRequestOptions({ store, scope }))
})

test('the options are read once: changing them afterwards changes nothing', () => {
  const methods = ['POST']
  const resolved = resolveRequestOptions({ store, scope, methods })
  methods.push('GET')
  expect(resolved.methods).toEqual(['POST'])
  expect(Object.isFrozen(resolved)).toBe(true)
})

test('every mistake is in one error, each in a line', () => {
  const message = messageOf({ leaseMS: 1, scope: 'acme', retentionMs: '24h', unknownOutcome: 'run', methods: ['post'] })
  expect(message.split('\n')).toEqual([
    'The options of idempotency() are invalid:',
    '  - leaseMS: did you mean leaseMs?',
    "  - store: expected a store, such as new MemoryStore() from 'once-per-key/memory'; seen: undefined",
    '  - scope: expected a function of the request that names the merchant account, such as (req) => req.merchantId; ' +
      'an application with a single tenant uses `scope: singleTenant`; seen: "acme"',
    `  - methods: expected an array of methods in upper case, such as ['POST']; seen: "post" (did you mean 'POST'?)`,
    '  - retentionMs: expected an integer from 1 to 4503599627370496; seen: "24h"',
    '  - unknownOutcome: expected "rerun" or "refuse"; seen: "run"',
    'See once-per-key/docs/errors.md#options_invalid',
  ])
})

test.each([
  { name: 'leaseMS', hint: 'did you mean leaseMs?' },
  { name: 'lease', hint: 'did you mean leaseMs?' },
  { name: 'STORETIMEOUTMS', hint: 'did you mean storeTimeoutMs?' },
  { name: 'retentionMS', hint: 'did you mean retentionMs?' },
  { name: 'maxRunMS', hint: 'did you mean maxRunMs?' },
  { name: 'Header', hint: 'did you mean header?' },
  { name: 'method', hint: 'did you mean methods?' },
  { name: 'scopes', hint: 'did you mean scope?' },
  { name: 'onEvents', hint: 'did you mean onEvent?' },
  { name: 'fingerPrint', hint: 'did you mean fingerprint?' },
  { name: 'storeTimeout', hint: 'did you mean storeTimeoutMs?' },
  { name: 'unkownOutcome', hint: 'did you mean unknownOutcome?' },
  { name: 'keepHeaders', hint: 'did you mean keepHeader?' },
  { name: 'x', hint: 'there is no such option' },
  { name: 'encryption', hint: 'there is no such option' },
  { name: '__proto__', hint: 'there is no such option' },
])('an unknown option is a mistake: $name, $hint', ({ name, hint }) => {
  const options = Object.defineProperty({ store, scope }, name, { value: 1, enumerable: true })
  expect(messageOf(options)).toContain(`\n  - ${name}: ${hint}`)
})

test.each([{ given: undefined }, { given: null }, { given: 'store' }, { given: 17 }, { given: () => ({}) }])(
  'options that are $given are a mistake',
  ({ given }) => {
    expect(messageOf(given)).toMatch(/expected options, such as { store: … }; seen: /)
  },
)

const DURATIONS = ['leaseMs', 'maxRunMs', 'retentionMs', 'inFlightWaitMs', 'retryAfterMs', 'storeTimeoutMs'] as const
const NO_NUMBERS = [Number.NaN, Number.POSITIVE_INFINITY, -1, 1.5, '1000', null, 1_000n, true, {}, [1], new Date()]
const NO_FUNCTIONS = [null, true, 'GET', 1, {}, []]
const SINCE = { deprecatedSince: new Date(0) }

const WRONG: readonly (readonly [name: string, values: readonly unknown[]])[] = [
  ...DURATIONS.map((name) => [name, NO_NUMBERS] as const),
  ['leaseMs', [0, 2 ** 31]],
  ['maxRunMs', [0, 2 ** 31]],
  ['retentionMs', [0, Number.MAX_SAFE_INTEGER]],
  ['inFlightWaitMs', [2 ** 31]],
  ['retryAfterMs', [2 ** 31]],
  ['storeTimeoutMs', [0, 2 ** 31]],
  ['maxAnswerBytes', NO_NUMBERS],
  ['store', [null, {}, 'redis', new Map(), { ...doubleOf(), renew: 1 }]],
  ['scope', [null, 'acme', {}, Promise.resolve('acme')]],
  ['header', [null, '', 'Idempotency Key', 'Idempotency-Key:', 'Ümlaut', 1, ['A'], /a/]],
  ['required', [null, 'true', 1, 0, () => true]],
  ['methods', [null, [], 'POST', ['post'], [''], ['POST '], [1], [['POST']], [null], new Set(['POST'])]],
  ...(['skip', 'fingerprint', 'isSuccess', 'keepHeader', 'renderProblem', 'onEvent'] as const).map(
    (name) => [name, NO_FUNCTIONS] as const,
  ),
  ['unknownOutcome', [null, '', 'RERUN', true]],
  ['storeFailure', [null, '', 'run', true]],
  [
    'problemStatuses',
    [null, 'ietf', 409, { in_flight: 200 }, { in_flight: 600 }, { in_flight: '409' }, { inFlight: 409 }],
  ],
  [
    'legacyKey',
    [
      null,
      'idempotencyKey',
      {},
      { field: 'a' },
      bodyField('', SINCE),
      bodyField(1 as never, SINCE),
      bodyField('a', { deprecatedSince: '2026-01-01' as never }),
      bodyField('a', { deprecatedSince: new Date(Number.NaN) }),
      bodyField('a', { ...SINCE, sunset: new Date(Number.NaN) }),
      bodyField('a', { ...SINCE, link: '' }),
      bodyField('a', { ...SINCE, link: 'https://a>; rel=x' }),
      bodyField('a', { ...SINCE, link: 'https://a\r\nb' }),
      bodyField('a', { ...SINCE, whenBoth: 'body' as never }),
    ],
  ],
]

test.each(WRONG)('%s is a mistake where it is of a wrong type or range', (name, values) => {
  for (const value of values) {
    const seen = `${name}: ${typeof value} ${String(typeof value === 'object' ? JSON.stringify(value) : value)}`
    expect(messageOf({ store, scope, [name]: value }), seen).toContain(`\n  - ${name}: expected `)
  }
})

test('what was seen is named by its kind; secrets are not repeated', () => {
  class Redis {
    readonly password = 'hunter2'
  }
  const message = messageOf({ store: new Redis(), scope: Object.assign(Object.create(null), { secret: 'hunter2' }) })
  expect(message).toContain('seen: an object (Redis)')
  expect(message).toContain('seen: an object (without prototype)')
  expect(message).not.toContain('hunter2')
})

describe('the relations between durations', () => {
  const TIMES = { leaseMs: 8_000, storeTimeoutMs: 2_000, maxRunMs: 8_000, retentionMs: 16_000, inFlightWaitMs: 8_000 }

  test('hold at their bounds', () => {
    expect(messageOf({ store, scope, ...TIMES })).toBe('')
  })

  test.each([
    {
      name: 'a lease shorter than four store time limits',
      times: { leaseMs: 7_999 },
      says: 'leaseMs: 7999 is less than 4 × storeTimeoutMs = 8000',
    },
    {
      name: 'a run shorter than a lease',
      times: { leaseMs: 8_001, retentionMs: 20_000 },
      says: 'maxRunMs: 8000 is less than leaseMs = 8001',
    },
    {
      name: 'a retention shorter than a run and a lease',
      times: { retentionMs: 15_999 },
      says: 'retentionMs: 15999 is less than maxRunMs + leaseMs = 16000',
    },
    {
      name: 'a wait longer than a run',
      times: { inFlightWaitMs: 8_001 },
      says: 'maxRunMs: 8000 is less than inFlightWaitMs = 8001',
    },
  ])('do not allow $name', ({ times, says }) => {
    expect(messageOf({ store, scope, ...TIMES, ...times })).toContain(`\n  - ${says}`)
  })

  test('are checked against the defaults as well', () => {
    expect(messageOf({ store, scope, leaseMs: 7_999 })).toContain('4 × storeTimeoutMs = 8000')
    expect(messageOf({ store, scope, retentionMs: 900_000 })).toContain('maxRunMs + leaseMs = 930000')
  })

  test('are all told at once', () => {
    const message = messageOf({
      store,
      scope,
      leaseMs: 1_000,
      maxRunMs: 999,
      retentionMs: 1_000,
      inFlightWaitMs: 1_000,
    })
    expect(message.match(/is less than/g)).toHaveLength(4)
  })

  test('are judged only between values that are right by themselves', () => {
    expect(messageOf({ store, scope, leaseMs: 'long', maxRunMs: 1 })).not.toContain('is less than')
  })
})

function doubleOf(): object {
  const command = () => {}
  return { begin: command, renew: command, complete: command, release: command }
}
