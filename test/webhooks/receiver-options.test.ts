import { MemoryStore } from 'once-per-key/memory'
import { type WebhookReceiverOptions, webhookReceiver } from 'once-per-key/webhooks'
import { expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { deliver, receive } from '../support/deliveries.js'
import { failingStore } from '../support/failing-store.js'
import { mistakesOf } from '../support/mistakes-of.js'

const right = { store: new MemoryStore(), source: 'payments', verify: false, on: {} } as const
const mistakes = (options: unknown) => mistakesOf(() => webhookReceiver(options as WebhookReceiverOptions))

test('the least that is needed is enough, and what is undefined is as if it were not given', () => {
  expect(mistakes(right)).toEqual([])
  expect(mistakes({ ...right, leaseMs: undefined, onUnknownEvent: undefined, onEvent: undefined })).toEqual([])
})

test('all mistakes are told at once', () => {
  const given = {
    sorce: 'payments',
    source: '',
    verify: true,
    on: { merchant_update: () => {}, mandate_setup_started: 'later' },
    onUnknownEvent: 1,
    maxBodyBytes: 0,
    leaseMs: 1.5,
    onEvent: [],
    inFlightWaitMs: 1,
  }
  expect(mistakes(given)).toEqual([
    'sorce: did you mean source?',
    'inFlightWaitMs: there is no such option',
    expect.stringMatching(/^source: expected a name of 1 to 255 characters .*; seen: ""$/),
    expect.stringMatching(/^verify: expected standardWebhooks\(…\), .*; seen: true$/),
    'onUnknownEvent: expected a function; seen: 1',
    'maxBodyBytes: expected an integer from 1 to 9007199254740991; seen: 0',
    'onEvent: expected a function; seen: an array',
    'on.merchant_update: did you mean merchant_updated?',
    'on.mandate_setup_started: expected a function; seen: "later"',
    expect.stringMatching(/^store: expected a store, .*; seen: undefined$/),
    'leaseMs: expected an integer from 1 to 2147483647; seen: 1.5',
  ])
})

test.each([
  { name: 'verify', without: { ...right, verify: undefined } },
  { name: 'source', without: { ...right, source: undefined } },
  { name: 'on', without: { ...right, on: undefined } },
  { name: 'store', without: { ...right, store: undefined } },
])('$name is required', ({ name, without }) => {
  expect(mistakes(without)).toEqual([expect.stringMatching(new RegExp(`^${name}: expected .*; seen: undefined$`))])
})

test.each([undefined, null, 'options'])('%s is no options', (given) => {
  expect(() => webhookReceiver(given as never)).toThrow(expect.objectContaining({ code: 'options_invalid' }))
})

test.each(['undefined', 'null', 'NaN', '[object Object]', '[object Promise]', 'a'.repeat(256), '\ud800', 7, null])(
  'a source %j is nobody’s name',
  (source) => {
    expect(mistakes({ ...right, source })).toEqual([expect.stringMatching(/^source: /)])
  },
)

test('with `parse`, `on` is a plain object of functions: what else is in it must not be called', () => {
  const parse = () => ({ id: '1', type: 'a', payload: 1 })
  expect(mistakes({ ...right, parse, on: { 'any.type': () => {}, none: undefined } })).toEqual([])
  expect(mistakes({ ...right, parse, on: Object.create(null) })).toEqual([])
  expect(mistakes({ ...right, parse: 'json', on: { 'any.type': 1 } })).toEqual([
    'parse: expected a function; seen: "json"',
    'on.any.type: expected a function; seen: 1',
  ])
  class Handlers {
    close() {}
  }
  expect(mistakes({ ...right, parse, on: new Handlers() })).toEqual([
    expect.stringMatching(/^on: expected a plain object where `parse` is given/),
  ])
})

test('what concerns an unknown outcome is the core’s', () => {
  const given = { effects: 'declared', unknownRetentionMs: 86_400_000, unconfirmedSuccess: 'withhold' }
  expect(mistakes({ ...right, ...given })).toEqual([])
  expect(mistakes({ ...right, effects: 'none', unknownRetentionMs: 929_999, unconfirmedSuccess: true })).toEqual([
    expect.stringMatching(/^effects: expected "assumed" or "declared"/),
    expect.stringMatching(/^unconfirmedSuccess: expected "send" or "withhold"/),
    expect.stringMatching(/^unknownRetentionMs: 929999 is less than/),
  ])
})

test('the relations of durations hold as for the middleware', () => {
  expect(mistakes({ ...right, leaseMs: 7_999 })).toEqual([
    expect.stringMatching(/^leaseMs: 7999 is less than 4 × storeTimeoutMs/),
  ])
  expect(mistakes({ ...right, retentionMs: 929_999 })).toEqual([
    expect.stringMatching(/^retentionMs: 929999 is less than/),
  ])
  expect(mistakes({ ...right, maxRunMs: 29_999 })).toEqual([
    expect.stringMatching(/^maxRunMs: 29999 is less than leaseMs/),
  ])
})

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

test('the options reach the store', async () => {
  const store = failingStore()
  for (const options of [{}, { leaseMs: 10_000, retentionMs: 2_000_000, unknownOutcome: 'refuse' } as const]) {
    const { port } = await receive(express5, { options: { ...options, store } })
    await deliver(port)
  }
  const claims = store.sent.filter(({ command }) => command === 'begin').map(({ terms }) => terms)
  expect(claims).toMatchObject([
    { leaseMs: 30_000, retentionMs: 2_678_400_000, unknownOutcome: 'rerun' },
    { leaseMs: 10_000, retentionMs: 2_000_000, unknownOutcome: 'refuse' },
  ])
})

test('the options are read once: changing them afterwards changes nothing', async () => {
  const on = { merchant_updated: () => {} }
  const { port } = await receive(express5, { options: { on } })
  on.merchant_updated = () => {
    throw new Error('changed')
  }
  expect((await deliver(port)).status).toBe(200)
})
