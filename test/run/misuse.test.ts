import { IdempotencyError, idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { type RunnerOptions, runner } from 'once-per-key/run'
import { describe, expect, test } from 'vitest'
import { mistakesOf } from '../support/mistakes-of.js'
import { mustNotRun, OPERATION, rejection, runnerOnTrial } from './runner-on-trial.js'

/** Misuse, before anything was sent to the store. */
async function misuseOf(given: unknown, work: unknown = mustNotRun) {
  const { once, events } = runnerOnTrial()
  const error = await rejection(once(given as typeof OPERATION, work as typeof mustNotRun))
  expect(error).toBeInstanceOf(IdempotencyError)
  expect(events).toEqual([])
  expect(await once.inspect(OPERATION)).toBeNull()
  return error
}

describe('the input is JSON, and what is not is misuse:', () => {
  class Amount {
    readonly cents = 5
  }
  const circular: unknown[] = []
  circular.push(circular)
  const cases: readonly (readonly [name: string, input: unknown, words: string])[] = [
    ['none', undefined, 'it is undefined'],
    ['a Map', new Map(), 'an object (Map)'],
    ['a Date', { at: new Date() }, 'an object (Date)'],
    ['NaN', [Number.NaN], 'NaN'],
    ['Infinity', { amount: Number.POSITIVE_INFINITY }, 'Infinity'],
    ['a bigint', { amount: 1n }, 'a bigint'],
    ['a function', { amount: () => 1 }, 'a function'],
    ['a symbol', Symbol('s'), 'a symbol'],
    ['an object of a class', new Amount(), 'an object (Amount)'],
    ['bytes', Uint8Array.of(1), 'an object (Uint8Array)'],
    ['a Buffer, though it has a toJSON', Buffer.from('a'), 'an object (Buffer)'],
    ['a hole in an array', [1, undefined], 'undefined'],
    ['a circle', circular, 'circular'],
    ['more than 1,000 levels', JSON.parse('['.repeat(1_002) + ']'.repeat(1_002)), '1000 levels'],
  ]
  test.each(cases)('%s', async (_name, input, words) => {
    const error = await misuseOf({ ...OPERATION, input })
    expect(error.code).toBe('input_invalid')
    expect(error.message).toContain(words)
  })

  test('null, where there is none, is JSON', async () => {
    expect(await runnerOnTrial().once({ ...OPERATION, input: null }, async () => 1)).toBe(1)
  })

  test('a plain object of another realm, or without a prototype, is JSON', async () => {
    const { once } = runnerOnTrial()
    await once({ ...OPERATION, input: { a: 1 } }, async () => 1)
    const input = Object.assign(Object.create(null), { a: 1 })
    expect(await once({ ...OPERATION, input }, mustNotRun)).toBe(1)
  })
})

describe('an operation must say', () => {
  test.each([
    ['nothing', undefined],
    ['no string', 7],
    ['an empty string', ''],
    ['the word "undefined"', 'undefined'],
    ['a function', singleTenant],
  ])('its scope; seen: %s', async (_name, scope) => {
    expect(await misuseOf({ ...OPERATION, scope })).toMatchObject({ code: 'scope_invalid' })
  })

  test.each([
    ['nothing', undefined, 'it is undefined; give what is the same in each repeat'],
    ['an empty string', '', 'it is empty; give what is the same in each repeat'],
    ['a number', 7, 'give it as text, String(id)'],
    ['300 characters', 'secret'.repeat(50), 'longer than 255 characters; give its hash'],
    ['a control character', 'secret\n', 'a control character; give its hash'],
  ])('its key; seen: %s', async (_name, key, words) => {
    const { code, message } = await misuseOf({ ...OPERATION, key })
    expect(code).toBe('arguments_invalid')
    expect(message).toContain(words)
    expect(message).not.toContain('secret')
  })

  test('nothing that nobody knows, and each mistake is listed', async () => {
    const { code, message } = await misuseOf({ ...OPERATION, inputs: 1, signal: 'stop' }, 'work')
    expect(code).toBe('arguments_invalid')
    expect(message).toContain('inputs: did you mean input?')
    expect(message).toContain('signal: expected an AbortSignal')
    expect(message).toContain('the second argument: expected a function; seen: a string')
    expect(await misuseOf(null)).toMatchObject({ code: 'arguments_invalid' })
    expect(await misuseOf({ ...OPERATION, signal: { aborted: false } })).toMatchObject({ code: 'arguments_invalid' })
  })
})

describe('the options', () => {
  const right = { store: new MemoryStore(), name: 'payouts' }
  const mistakes = (given: unknown) => mistakesOf(() => runner(given as RunnerOptions & { result?: undefined }))

  test('need a store and a name', () => {
    expect(mistakes({})).toEqual([expect.stringMatching(/^name: expected a word/), expect.stringMatching(/^store: /)])
    expect(mistakes(undefined)).toHaveLength(1)
    expect(mistakes(right)).toEqual([])
  })

  test.each(['', 'a b', 'a:b', 'a%b', 7])('take no name like %j', (name) => {
    expect(mistakes({ ...right, name })).toEqual([expect.stringMatching(/^name: expected a word without a colon/)])
  })

  test('have no scope, which is given with each call', () => {
    expect(mistakes({ ...right, scope: () => 'acme' })).toEqual([
      expect.stringContaining('scope: expected no such option: each call has its own scope, as in once({ scope'),
    ])
  })

  test('that are wrong are listed once, with those of the engine', () => {
    expect(
      mistakes({ ...right, leaseMS: 1, leaseMs: 1, result: {}, maxAnswerBytes: -1, isCertainFailure: 1, onEvent: 1 }),
    ).toEqual([
      'leaseMS: did you mean leaseMs?',
      expect.stringMatching(/^result: expected { encode, decode }/),
      expect.stringMatching(/^isCertainFailure: expected a function/),
      expect.stringMatching(/^maxAnswerBytes: expected an integer/),
      expect.stringMatching(/^onEvent: expected a function/),
      expect.stringMatching(/^leaseMs: 1 is less than 4 × storeTimeoutMs/),
    ])
  })

  test('of requests are not a runner’s', () => {
    expect(mistakes({ ...right, renderProblem: () => {} })).toEqual(['renderProblem: there is no such option'])
    expect(mistakesOf(() => idempotency({ ...right, scope: singleTenant } as never))).toHaveLength(1)
  })
})
