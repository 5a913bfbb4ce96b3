import { deserialize, serialize } from 'node:v8'
import fc from 'fast-check'
import { runner } from 'once-per-key/run'
import { describe, expect, test } from 'vitest'
import { heardWarnings } from '../support/warnings.js'
import { mustNotRun, OPERATION, rejection, runnerOnTrial } from './runner-on-trial.js'

describe('a repeat', () => {
  test('gets the first run’s result, and the function does not run', async () => {
    const { once, types } = runnerOnTrial()
    expect(await once(OPERATION, async () => ({ id: 'po_1' }))).toEqual({ id: 'po_1' })
    expect(await once(OPERATION, mustNotRun)).toEqual({ id: 'po_1' })
    expect(types()).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('may have the members of its input in another order, or one that is undefined', async () => {
    const { once } = runnerOnTrial()
    await once(OPERATION, async () => 1)
    const input = { amount: 100, note: undefined, invoice: 'in_7' }
    expect(await once({ ...OPERATION, input }, mustNotRun)).toBe(1)
  })

  test('of a function that returns nothing resolves with nothing', async () => {
    const { once } = runnerOnTrial()
    expect(await once(OPERATION, async () => {})).toBeUndefined()
    expect(await once(OPERATION, mustNotRun)).toBeUndefined()
  })

  test('of a function that is not asynchronous works, too', async () => {
    const { once } = runnerOnTrial()
    expect(await once(OPERATION, () => 7)).toBe(7)
    expect(await once(OPERATION, mustNotRun)).toBe(7)
  })
})

describe('the first caller gets the result as a repeat does', () => {
  class Money {
    constructor(readonly cents: number) {}
  }
  const cases: readonly (readonly [name: string, result: unknown, both: unknown])[] = [
    ['a member that is undefined is left out', { id: 1, note: undefined }, { id: 1 }],
    ['a Date is its text', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
    ['an object of a class is a plain one', new Money(5), { cents: 5 }],
    ['-0 is 0', -0, 0],
    ['an empty string is one', '', ''],
    ['null is null', null, null],
    ['text with half a surrogate pair stays as it is', '\ud800', '\ud800'],
  ]
  test.each(cases)('%s', async (_name, result, both) => {
    const { once, told } = runnerOnTrial()
    const first = await once(OPERATION, async () => result as string)
    expect(first).toStrictEqual(both)
    expect(await once(OPERATION, mustNotRun)).toStrictEqual(both)
    expect(told('result_not_kept')).toEqual([])
  })

  test('whatever the JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (result) => {
        const { once } = runnerOnTrial()
        const first = await once(OPERATION, async () => result as string)
        expect(first).toStrictEqual(JSON.parse(JSON.stringify(result)))
        expect(await once(OPERATION, mustNotRun)).toStrictEqual(first)
      }),
    )
  })

  test('and each caller an object of its own', async () => {
    const { once } = runnerOnTrial()
    const made = { lines: [1] }
    const first = await once(OPERATION, async () => made)
    first.lines.push(2)
    made.lines.push(3)
    expect(await once(OPERATION, mustNotRun)).toEqual({ lines: [1] })
  })
})

describe('a result that cannot be kept', () => {
  const circular: { self?: unknown } = {}
  circular.self = circular
  const cases: readonly (readonly [name: string, result: unknown])[] = [
    ['a Map', { map: new Map([[1, 2]]) }],
    ['NaN', { amount: Number.NaN }],
    ['a bigint', 7n],
    ['a function', () => {}],
    ['a hole in an array', [1, undefined]],
    ['a circle', circular],
    ['one that is too large', 'x'.repeat(2_000)],
  ]
  test.each(cases)('(%s) is its caller’s, and a repeat is refused: it never runs again', async (_name, result) => {
    const { once, types, events } = runnerOnTrial({ maxAnswerBytes: 1_000 })
    expect(await once(OPERATION, async () => result as string)).toBe(result)
    expect(await rejection(once(OPERATION, mustNotRun))).toMatchObject({
      name: 'RefusedError',
      code: 'answer_not_kept',
      retryAfterMs: null,
    })
    expect(types()).toEqual(['claimed', 'result_not_kept', 'completed', 'answer_not_kept'])
    expect(events[1]).toMatchObject({ scope: 'acme', key: 'job-1', attempt: 1, error: expect.any(Error) })
    expect(events[2]).toMatchObject({ answerKept: false })
  })

  test('is told on standard error where nobody listens', async () => {
    const warnings = heardWarnings()
    const { given } = runnerOnTrial()
    const { onEvent: _, ...unheard } = given
    const once = runner(unheard)
    await once(OPERATION, async () => Number.NaN)
    await new Promise(setImmediate)
    expect(warnings).toMatchObject([
      { code: 'ONCE_PER_KEY_RESULT_NOT_KEPT', message: expect.stringContaining('NaN, which is not JSON') },
    ])
  })

  test.each([1_000, 1_001])('is one of more than maxAnswerBytes: %i of 1000', async (length) => {
    const { once, told } = runnerOnTrial({ maxAnswerBytes: 1_000 })
    await once(OPERATION, async () => 'x'.repeat(length - 2))
    expect(told('completed')).toMatchObject([{ answerKept: length === 1_000 }])
  })
})

describe('with a codec of one’s own', () => {
  test('results need not be JSON: text', async () => {
    const { given } = runnerOnTrial()
    const encode = (map: Map<string, number>) => JSON.stringify([...map])
    const once = runner({ ...given, result: { encode, decode: (text) => new Map(JSON.parse(text)) } })
    const map = new Map([['ä', 1]])
    const first = await once(OPERATION, async () => map)
    expect(first).toEqual(map)
    expect(first).not.toBe(map)
    expect(await once(OPERATION, mustNotRun)).toEqual(map)
  })

  test('or bytes', async () => {
    const { given } = runnerOnTrial()
    const once = runner({ ...given, result: { encode: serialize, decode: deserialize } })
    const result = { at: new Date(0), big: 7n, bytes: Uint8Array.of(0, 255) }
    expect(await once(OPERATION, async () => result)).toEqual(result)
    expect(await once(OPERATION, mustNotRun)).toEqual(result)
  })

  test('`decode` is given bytes of its own', async () => {
    const { given } = runnerOnTrial()
    const seen = Uint8Array.of(1, 2)
    const once = runner({ ...given, result: { encode: () => seen, decode: (bytes) => bytes.fill(9).length } })
    expect(await once(OPERATION, async () => 1)).toBe(2)
    expect([...seen]).toEqual([1, 2])
    const { answer } = (await once.inspect(OPERATION)) as { answer: { body: Uint8Array } }
    expect([...answer.body]).toEqual([1, 2])
  })

  const no = (): never => {
    throw new Error('no')
  }
  test.each([
    ['`encode` throws', { encode: no, decode: String }],
    ['`encode` returns a promise', { encode: async () => 'text', decode: String }],
    ['`encode` returns an array', { encode: () => [1, 2], decode: String }],
    ['`decode` cannot read it', { encode: String, decode: no }],
  ])('a result is not kept where %s', async (_name, result) => {
    const { given, told } = runnerOnTrial()
    const once = runner({ ...given, result: result as unknown as { encode: typeof String; decode: typeof String } })
    expect(await once(OPERATION, async () => 'made')).toBe('made')
    expect(told('result_not_kept')).toHaveLength(1)
    expect(await rejection(once(OPERATION, mustNotRun))).toMatchObject({ code: 'answer_not_kept' })
  })

  test('a stored result that it cannot read is misuse, and its record stands', async () => {
    const { given, once } = runnerOnTrial()
    const other = runner({ ...given, result: { encode: String, decode: no } })
    await once(OPERATION, async () => 'made')
    expect(await rejection(other(OPERATION, mustNotRun))).toMatchObject({
      name: 'IdempotencyError',
      code: 'decode_failed',
      cause: { message: 'no' },
    })
    expect(await once(OPERATION, mustNotRun)).toBe('made')
  })

  test('the error of one that is not JSON does not quote it', async () => {
    const { given, once } = runnerOnTrial()
    const asText = runner({ ...given, result: { encode: String, decode: String } })
    await asText(OPERATION, async () => 'Ada Lovelace')
    const error = (await rejection(once(OPERATION, mustNotRun))) as Error & { cause: Error }
    expect(error).toMatchObject({ code: 'decode_failed', cause: { message: 'it is not JSON' } })
    expect(error.message).not.toContain('Ada')
  })
})
