import { describe, expect, test } from 'vitest'
import { CertainFailure, type IdempotencyOptions } from '../../src/index.js'
import { BINDINGS, type ErrorStep, type Step } from '../support/bindings.js'
import { request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// A handler that pays and then fails was told to its retry as 'failed': certainly without effect. The retry paid again.

const [express5, express4, connect, plain] = BINDINGS as [
  (typeof BINDINGS)[number],
  (typeof BINDINGS)[number],
  (typeof BINDINGS)[number],
  (typeof BINDINGS)[number],
]

interface Setting {
  readonly binding?: (typeof BINDINGS)[number]
  readonly onError?: ErrorStep
  readonly options?: Partial<IdempotencyOptions>
}

/** What the second attempt is told when the first one ends as given; `refused`: it does not run. */
async function toldAfter(first: Step, { binding = express5, onError, options = {} }: Setting = {}): Promise<unknown> {
  const told: string[] = []
  const handler: Step = (req, res, next) => {
    if (told.push(req.idempotency.previousOutcome) === 1) return first(req, res, next)
    res.end('paid')
  }
  const serving = await serve(binding, handler, { ...(onError && { onError }), options })
  await request(serving.port, { key: 'k' }).catch(() => {})
  await serving.once.idle()
  const retry = await request(serving.port, { key: 'k' })
  return told[1] ?? (retry.json() as { code: string }).code
}

const answering = (status: number): Step => {
  return (_req, res) => {
    res.statusCode = status
    res.end('no')
  }
}

describe('after an answer of', () => {
  test.each([500, 502, 503, 504, 307, 308, 408, 499])('%i, an earlier outcome is unknown', async (status) => {
    expect(await toldAfter(answering(status))).toBe('unknown')
    expect(await toldAfter(answering(status), { options: { unknownOutcome: 'refuse' } })).toBe('outcome_unknown')
  })

  test.each([400, 401, 402, 409, 422, 429])('%i, the handler has refused: it has certainly failed', async (status) => {
    expect(await toldAfter(answering(status))).toBe('failed')
  })

  test('422 behind mayHaveEffect(), an earlier outcome is unknown', async () => {
    const told = toldAfter((req, res) => {
      req.idempotency.mayHaveEffect()
      res.statusCode = 422
      res.end('declined')
    })
    expect(await told).toBe('unknown')
  })
})

describe.each(BINDINGS)('on $name', (binding) => {
  test.each<[string, Step]>([
    ['a throw', () => raise(new Error('the bank did not answer'))],
    ['next(error)', (_req, _res, next) => next(new Error('the bank did not answer'))],
    ['destroy()', (_req, res) => res.destroy()],
  ])('behind %s, an earlier outcome is unknown', async (_name, first) => {
    expect(await toldAfter(first, { binding })).toBe('unknown')
    expect(await toldAfter(first, { binding, options: { effects: 'declared' } })).toBe('failed')
  })

  // Who answers its errors by hand on node:http says so: by the error's status, or by `isCertainFailure`.
  test.skipIf(binding === plain)('a CertainFailure has certainly failed', async () => {
    expect(await toldAfter((_req, _res, next) => next(new CertainFailure('no such account')), { binding })).toBe(
      'failed',
    )
    expect(await toldAfter(() => raise(new CertainFailure('no such account')), { binding })).toBe('failed')
  })
})

describe.each([express5, express4])('a CertainFailure that an error handler of $name answers with', (binding) => {
  const as503: ErrorStep = (_error, _req, res, _next) => void res.status(503).end()

  test('503 has certainly failed', async () => {
    const first: Step = (_req, _res, next) => next(new CertainFailure('no such account'))
    expect(await toldAfter(first, { binding, onError: as503 })).toBe('failed')
  })

  test('200 has failed all the same', async () => {
    const first: Step = (_req, _res, next) => next(new CertainFailure('no such account'))
    const onError: ErrorStep = (_error, _req, res, _next) => void res.status(200).end()
    expect(await toldAfter(first, { binding, onError })).toBe('failed')
  })

  test('503 behind mayHaveEffect() is unknown', async () => {
    const first: Step = (req) => {
      req.idempotency.mayHaveEffect()
      throw new CertainFailure('no such account')
    }
    expect(await toldAfter(first, { binding, onError: as503 })).toBe('unknown')
  })

  test('another error is unknown', async () => {
    const first: Step = (_req, _res, next) => next(new CertainFailure('no such account'))
    const onError: ErrorStep = (_error, _req, _res, next) => next(new Error('the error handler broke'))
    expect(await toldAfter(first, { binding, onError })).toBe('unknown')
  })

  test('503, where the handler caught it and failed otherwise, is unknown', async () => {
    const first: Step = () => {
      try {
        raise(new CertainFailure('not at this bank'))
      } catch {}
      throw new Error('the other bank did not answer')
    }
    expect(await toldAfter(first, { binding, onError: as503 })).toBe('unknown')
  })
})

test('a CertainFailure has a status that error handlers know, and refuses one that is no refusal', () => {
  expect(new CertainFailure('no')).toMatchObject({
    status: 422,
    statusCode: 422,
    code: 'certain_failure',
    message: 'no',
  })
  expect(new CertainFailure('no', { status: 404, cause: 'why' })).toMatchObject({ status: 404, cause: 'why' })
  for (const status of [200, 408, 499, 500, Number.NaN]) {
    expect(() => new CertainFailure('no', { status })).toThrow(/400 to 499, except 408 and 499/)
  }
})

test.each([
  ['in place of the options', 409, 'seen: 409'],
  ['that is text', { status: '409' }, 'seen: "409"'],
])('nor takes it a status %s for another one', (_which, options, seen) => {
  expect(() => new CertainFailure('no', options as never)).toThrow(seen)
})

describe('isCertainFailure', () => {
  test('decides of answers that are neither a success nor a refusal', async () => {
    const asked: number[] = []
    const isCertainFailure = (answer: { status: number }) => asked.push(answer.status) > 0 && answer.status === 503
    expect(await toldAfter(answering(503), { options: { isCertainFailure } })).toBe('failed')
    expect(await toldAfter(answering(504), { options: { isCertainFailure } })).toBe('unknown')
    expect(await toldAfter(answering(422), { options: { isCertainFailure } })).toBe('failed')
    expect(asked).toEqual([503, 504])
  })

  test('is not asked behind mayHaveEffect(), nor where there is no answer', async () => {
    let asked = 0
    const isCertainFailure = () => ++asked > 0
    const behindEffect: Step = (req, res, next) => {
      req.idempotency.mayHaveEffect()
      return answering(503)(req, res, next)
    }
    expect(await toldAfter(behindEffect, { options: { isCertainFailure } })).toBe('unknown')
    expect(await toldAfter((_req, res) => res.destroy(), { options: { isCertainFailure } })).toBe('unknown')
    expect(asked).toBe(0)
  })

  test('that throws leaves the outcome unknown', async () => {
    const isCertainFailure = () => raise(new Error('oops'))
    expect(await toldAfter(answering(503), { options: { isCertainFailure } })).toBe('unknown')
  })
})

describe("effects: 'declared'", () => {
  test('makes a failure certain', async () => {
    expect(await toldAfter(answering(500), { options: { effects: 'declared' } })).toBe('failed')
  })

  test('does not behind mayHaveEffect()', async () => {
    const first: Step = (req, res, next) => {
      req.idempotency.mayHaveEffect()
      return answering(500)(req, res, next)
    }
    expect(await toldAfter(first, { options: { effects: 'declared' } })).toBe('unknown')
  })
})

test('the signal tells a handler to stop whose run a time limit has ended in its place', async () => {
  let signal: AbortSignal | undefined
  const handler: Step = (req, res) => {
    signal = req.idempotency.signal
    setImmediate(() => {
      res.statusCode = 503
      res.end('timed out')
    })
  }
  const serving = await serve(plain, handler)
  expect((await request(serving.port, { key: 'k' })).status).toBe(503)
  expect(signal?.reason).toMatchObject({ code: 'run_failed' })
})

test('events say why', async () => {
  const serving = await serve(connect, answering(500))
  await request(serving.port, { key: 'k' })
  await request(serving.port, { key: 'k' })
  await serving.once.idle()
  expect(serving.events).toMatchObject([
    { type: 'claimed', because: 'new' },
    { type: 'failed', uncertain: true, because: 'status' },
    { type: 'claimed', because: 'outcome_unknown' },
    { type: 'failed', uncertain: true, because: 'earlier_attempt' },
  ])
})

function raise(error: Error): never {
  throw error
}
