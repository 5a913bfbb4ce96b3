import { join } from 'node:path'
import express, { type Express, type RequestHandler, Router } from 'express'
import express4 from 'express4'
import createError from 'http-errors'
import { CertainFailure, type IdempotencyOptions, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { BINDINGS, type ErrorStep, listen, type Step } from '../support/bindings.js'
import { request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// A handler charged a card, and then a mail service answered 401: Express sent the error's status, which counted as the handler's refusal,
// so the next attempt was told that nothing had happened.

const VERSIONS = [
  { name: 'Express 5', make: express, router: Router, seesRejections: true },
  {
    name: 'Express 4',
    make: express4 as unknown as typeof express,
    router: express4.Router as unknown as typeof Router,
    seesRejections: false,
  },
] as const

/** As axios throws it. */
function unauthorized(): Error {
  return Object.assign(new Error('401'), { isAxiosError: true, status: 401, response: { status: 401, data: {} } })
}

interface Build {
  readonly app: Express
  readonly once: Step
  readonly handler: Step
}

/** The status of a handler's first attempt, and what the second is told of it. */
async function toldAfter(
  make: typeof express,
  first: Step,
  build: (given: Build) => void = ({ app, once, handler }) => app.post('/payouts', once, handler),
  options: Partial<IdempotencyOptions> = {},
): Promise<{ status: number; told: string | undefined }> {
  const told: string[] = []
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', onEvent() {}, ...options })
  const app = make()
  app.set('env', 'test') // Express prints no errors then.
  build({
    app,
    once: once as Step,
    handler(req, res, next) {
      if (told.push(req.idempotency.previousOutcome) === 1) return first(req, res, next)
      res.end('paid')
    },
  })
  const running = await listen(app as unknown as RequestHandler as never)
  onTestFinished(running.close)
  const { status } = await request(running.port, { path: '/payouts', key: 'k' })
  await once.idle()
  await request(running.port, { path: '/payouts', key: 'k' })
  return { status, told: told[1] }
}

const passes =
  (error: unknown): Step =>
  (_req, _res, next) =>
    next(error)

const answersBy: ErrorStep = (error, _req, res, _next) => {
  res.statusCode = error.status
  res.end('no')
}

describe.each(VERSIONS)('on $name', ({ make, router, seesRejections }) => {
  const UNKNOWN = { status: 401, told: 'unknown' }

  test('what a handler passes to `next` is not its refusal', async () => {
    expect(await toldAfter(make, passes(unauthorized()))).toEqual(UNKNOWN)
  })

  test('what it throws is not', async () => {
    const first = () => {
      throw unauthorized()
    }
    expect(await toldAfter(make, first)).toEqual(UNKNOWN)
  })

  test.skipIf(!seesRejections)('what it rejects with is not', async () => {
    expect(await toldAfter(make, async () => Promise.reject(unauthorized()))).toEqual(UNKNOWN)
  })

  test.each<[string, (given: Build) => void]>([
    [
      'in a nested router',
      ({ app, once, handler }) => app.use(once, router().use('/payouts', router().post('/', handler))),
    ],
    [
      'behind a claim in a nested router',
      ({ app, once, handler }) => app.use('/payouts', router().use(once).post('/', handler)),
    ],
    [
      'in a mounted application',
      ({ app, once, handler }) => app.use('/payouts', make().set('env', 'test').use(once).post('/', handler)),
    ],
    [
      'where the claim is in front of a mounted application',
      ({ app, once, handler }) => {
        app.use(once)
        app.use('/payouts', make().set('env', 'test').post('/', handler))
      },
    ],
    [
      'in a parameter of the route',
      ({ app, once, handler }) => {
        app.use(once)
        app.param('id', (req, res, next) => handler(req, res, next))
        app.post('/:id', (_req, res) => void res.end())
      },
    ],
    [
      'with an error handler that answers after a pause',
      ({ app, once, handler }) => {
        app.post('/payouts', once, handler)
        app.use(((error, req, res, next) => setImmediate(() => answersBy(error, req, res, next))) as ErrorStep as never)
      },
    ],
    [
      'with an error handler of the route',
      ({ app, once, handler }) => {
        app.post('/payouts', once, handler, answersBy as never)
      },
    ],
    [
      'with an error handler that passes another error on',
      ({ app, once, handler }) => {
        app.post('/payouts', once, handler)
        app.use(((error, _req, _res, next) => next(createError(error.status))) as ErrorStep as never)
      },
    ],
    [
      'with an error handler in front of which routes are added later',
      ({ app, once, handler }) => {
        app.post('/payouts', once, (req, res, next) => {
          app.post('/later', (_req, res) => void res.end())
          handler(req, res, next)
        })
      },
    ],
  ])('%s it is not', async (_name, build) => {
    expect(await toldAfter(make, passes(unauthorized()), build)).toEqual(UNKNOWN)
  })

  test('where an error handler goes on, and Express answers that there is no such route, it is not', async () => {
    const build = ({ app, once, handler }: Build) => {
      app.post('/payouts', once, handler)
      app.use(((_error, _req, _res, next) => next()) as ErrorStep as never)
    }
    expect(await toldAfter(make, passes(unauthorized()), build)).toEqual({ status: 404, told: 'unknown' })
  })

  test('a file that is missing is not', async () => {
    const nowhere = join(import.meta.dirname, 'no-such-receipt.pdf')
    const sends: Step = (_req, res) => res.sendFile(nowhere)
    expect(await toldAfter(make, sends)).toEqual({ status: 404, told: 'unknown' })
    const told: Step = (_req, res, next) => res.sendFile(nowhere, (error: unknown) => next(error))
    expect(await toldAfter(make, told)).toEqual({ status: 404, told: 'unknown' })
    const inRouter = ({ app, once, handler }: Build) => app.use(once, router().post('/payouts', handler))
    expect(await toldAfter(make, sends, inRouter)).toEqual({ status: 404, told: 'unknown' })
  })

  test('a CertainFailure has certainly failed, whatever it was caused by, and whoever converts the error', async () => {
    const first = passes(new CertainFailure('no such account', { status: 401, cause: unauthorized() }))
    expect(await toldAfter(make, first)).toEqual({ status: 401, told: 'failed' })
    const build = ({ app, once, handler }: Build) => {
      app.post('/payouts', once, handler)
      app.use(((cause, _req, _res, next) => next(new CertainFailure('declined', { cause }))) as ErrorStep as never)
    }
    expect(await toldAfter(make, passes(unauthorized()), build)).toEqual({ status: 422, told: 'failed' })
  })

  test('a handler that catches it and answers itself has refused', async () => {
    const first: Step = (_req, res) => res.status(402).json({ declined: true })
    expect(await toldAfter(make, first)).toEqual({ status: 402, told: 'failed' })
  })

  test('an error of the application with a status of its own is a refusal', async () => {
    const notFound = Object.assign(new Error('no such account'), { status: 404 })
    expect(await toldAfter(make, passes(notFound))).toEqual({ status: 404, told: 'failed' })
    expect(await toldAfter(make, passes(createError(409)))).toEqual({ status: 409, told: 'failed' })
  })

  test('a success that an error handler answers is one', async () => {
    const build = ({ app, once, handler }: Build) => {
      app.post('/payouts', once, handler)
      app.use(((_error, _req, res, _next) => res.end('queued')) as ErrorStep as never)
    }
    expect(await toldAfter(make, passes(unauthorized()), build)).toEqual({ status: 200, told: undefined })
  })

  test('`isCertainFailure` and `effects` decide otherwise', async () => {
    const first = passes(unauthorized())
    const failed = { status: 401, told: 'failed' }
    expect(await toldAfter(make, first, undefined, { isCertainFailure: ({ status }) => status === 401 })).toEqual(
      failed,
    )
    expect(await toldAfter(make, first, undefined, { effects: 'declared' })).toEqual(failed)
  })

  test('the event says why', async () => {
    const events: unknown[] = []
    await toldAfter(make, passes(unauthorized()), undefined, { onEvent: (event) => events.push(event) })
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'failed', uncertain: true, because: 'foreign_error' }),
    )
  })

  test('the application has one layer more, and no more with each request', async () => {
    const app = make().set('env', 'test')
    const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', onEvent() {} })
    app.post('/payouts', once, passes(unauthorized()) as RequestHandler)
    // Express 4 throws if `app.router` is read.
    const { stack } = (app as { _router?: { stack: unknown[] } })._router ?? app.router
    const before = stack.length
    const running = await listen(app as unknown as RequestHandler as never)
    onTestFinished(running.close)
    for (const key of ['a', 'b', 'c']) await request(running.port, { path: '/payouts', key })
    expect(stack).toHaveLength(before + 1)
  })
})

test('on Connect, which shows no errors, an error handler says that the outcome is unknown', async () => {
  const told: string[] = []
  const first: Step = (req, res, next) => {
    if (told.push(req.idempotency.previousOutcome) === 1) return next(unauthorized())
    res.end('paid')
  }
  const onError: ErrorStep = (error, req, _res, next) => {
    req.idempotency?.mayHaveEffect()
    next(error)
  }
  const connect = BINDINGS.find(({ name }) => name === 'Connect') as (typeof BINDINGS)[number]
  const serving = await serve(connect, first, { onError })
  expect((await request(serving.port, { key: 'k' })).status).toBe(401)
  await request(serving.port, { key: 'k' })
  expect(told).toEqual(['none', 'unknown'])
})
