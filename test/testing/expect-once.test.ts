import { createServer } from 'node:http'
import express, { type Express } from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import bodyParser from 'koa-bodyparser'
import { type IdempotencyOptions, idempotency } from 'once-per-key'
import { idempotency as onFastify } from 'once-per-key/fastify'
import { idempotency as onFetch } from 'once-per-key/fetch'
import { idempotency as onHono } from 'once-per-key/hono'
import { idempotency as onKoa } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { expectOnce, type OnceApp } from 'once-per-key/testing'
import supertest from 'supertest'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { gate } from '../support/gate.js'

const ALL = [
  'first and repeat',
  'race',
  'other body',
  'failure and retry',
  'crash between effect and answer',
  'other body after a crash',
]
const REQUEST = { path: '/payouts', body: { amount: 100 } }

interface Faults {
  /** Its bank removes duplicates where it is given a derived key. */
  readonly derives?: boolean
  /** After an unknown outcome it takes the effect for granted. */
  readonly believes?: boolean
  /** Answered where the bank is closed; `breaks`: no failure is answered. */
  readonly closedStatus?: number | 'breaks'
  /** Answered where the bank's answer is lost. */
  readonly lostStatus?: number
  /** Undoes what the bank has done, where its answer is lost. */
  readonly undoes?: boolean
  /** Its bank knows a payment by the client's key alone. */
  readonly passesKey?: boolean
}

function payouts({
  derives = true,
  believes = false,
  closedStatus = 502,
  lostStatus = 502,
  undoes = false,
  passesKey = false,
  ...options
}: Partial<IdempotencyOptions> & Faults = {}) {
  const paid: string[] = []
  let failing: 'before' | 'after' | undefined
  const pay = (key: string | undefined): { id: string } => {
    const when = failing
    failing = undefined
    if (when === 'before') throw new Error('the bank is closed')
    if (key === undefined || !paid.includes(key)) paid.push(key ?? `${paid.length}`)
    if (when === 'after') throw new Error('the process dies')
    return { id: `po_${paid.indexOf(key ?? '') + 1}` }
  }
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', ...options })
  const app = (protect: boolean): Express =>
    express()
      .use(express.json())
      .use(protect ? once : (_req, _res, next) => next())
      .post('/payouts', (req, res) => {
        if (believes && req.idempotency?.previousOutcome === 'unknown') res.sendStatus(201)
        else
          res
            .status(201)
            .json(
              pay(passesKey ? req.get('Idempotency-Key') : derives ? req.idempotency?.deriveKey('bank') : undefined),
            )
      })
      .use((error: Error, _req: unknown, res: express.Response, _next: unknown) => {
        if (closedStatus === 'breaks') res.destroy()
        else if (error.message === 'the bank is closed') res.sendStatus(closedStatus)
        else {
          if (undoes) paid.pop()
          res.sendStatus(lostStatus)
        }
      })
  return {
    app,
    pay,
    expectations: {
      effects: () => paid.length,
      fail(when: 'before' | 'after') {
        failing = when
      },
    },
  }
}

test('an application that keeps every promise passes, and is told what was tried', async () => {
  const { app, expectations } = payouts()
  expect(await expectOnce(app(true), REQUEST, expectations)).toEqual({ checked: ALL, skipped: [] })
})

test('without options, what needs them is skipped', async () => {
  const { app } = payouts()
  expect(await expectOnce(app(true), { path: '/payouts' })).toEqual({
    checked: ALL.slice(0, 2),
    skipped: ALL.slice(2),
  })
})

test('a content type is the request’s own, however its name is written', async () => {
  const { app } = payouts()
  const request = { ...REQUEST, headers: { 'content-type': 'application/json; charset=utf-8' } }
  expect((await expectOnce(app(true), request)).checked).toEqual(ALL.slice(0, 3))
})

test('with `unknownOutcome: "refuse"`, a refused retry is right', async () => {
  const { app, expectations } = payouts({ unknownOutcome: 'refuse', derives: false })
  expect((await expectOnce(app(true), REQUEST, expectations)).checked).toEqual(ALL)
})

test('an answer that is not kept is right where the handler has run once', async () => {
  const { app, expectations } = payouts({ maxAnswerBytes: 4 })
  expect((await expectOnce(app(true), REQUEST, expectations)).checked).toEqual(ALL)
})

test('a refusal that a protocol keeps is right; it was no effect', async () => {
  const { app, expectations } = payouts({ closedStatus: 402, isSuccess: ({ status }) => status < 500 })
  expect((await expectOnce(app(true), REQUEST, expectations)).checked).toEqual(ALL)
})

test.each([
  ['that was undone', { undoes: true }],
  ['that the bank recognises by the client’s key, whatever the body', { passesKey: true }],
])('a certain failure is right after an effect %s', async (_which, faults) => {
  const { app, expectations } = payouts({ lostStatus: 400, ...faults })
  expect((await expectOnce(app(true), REQUEST, expectations)).checked).toEqual(ALL)
})

test('without a count of effects, nothing says that one was not undone', async () => {
  const { app, expectations } = payouts({ lostStatus: 400 })
  expect(await expectOnce(app(true), REQUEST, { fail: expectations.fail })).toEqual({
    checked: ALL.slice(0, 5),
    skipped: ALL.slice(5),
  })
})

test('a connection that breaks is an attempt without an answer', async () => {
  const { app, expectations } = payouts({ closedStatus: 'breaks' })
  expect((await expectOnce(app(true), REQUEST, expectations)).checked).toEqual(ALL)
})

test('so is a Fetch handler that throws', async () => {
  const { pay, expectations } = payouts()
  const once = onFetch({ store: new MemoryStore(), scope: () => 'acme' })
  const app = once(async (_request, operation) => Response.json(pay(operation?.deriveKey('bank')), { status: 201 }))
  const fetching = (request: Request) => app(request)
  expect((await expectOnce(fetching, REQUEST, expectations)).checked).toEqual(ALL)
})

describe('says in words what broke', () => {
  const breaks = async (app: OnceApp, expectations: object, message: RegExp) => {
    const error = await expectOnce(app, REQUEST, expectations).catch((error) => error)
    expect(error).toMatchObject({ name: 'AssertionError', code: 'ERR_ASSERTION', operator: 'expectOnce' })
    expect(error.message).toMatch(message)
  }

  test('no middleware', async () => {
    const { app, expectations } = payouts()
    await breaks(
      app(false),
      expectations,
      /^the handler ran twice: the same request was sent again.* behind the middleware, and do both requests have one scope/,
    )
    await breaks(app(false), {}, /^the handler ran twice: .* was answered anew \(201/)
  })

  test('effects that are not counted', async () => {
    const { app, expectations } = payouts()
    await breaks(
      app(true),
      { ...expectations, effects: () => 0 },
      /^one request succeeded, and `effects` counted 0 for it: it must count what the handler does, such as transfers/,
    )
  })

  test('a page of an error, as far as its message', async () => {
    const page = `<!DOCTYPE html>${'<p>'.repeat(100)}IdempotencyError: why`
    const failing = () => new Response(page, { status: 500 })
    await breaks(failing, {}, /IdempotencyError: why/)
  })

  test('a store for each request', async () => {
    const { app, expectations } = payouts({ skip: () => ++requests > 2 })
    let requests = 0
    await breaks(
      app(true),
      expectations,
      /^the handler ran 5 times: of 5 identical requests at once, 5 were carried out/,
    )
  })

  test('a fingerprint without the body', async () => {
    const { app, expectations } = payouts({ fingerprint: () => null })
    await breaks(app(true), expectations, /^another body under the same key got the answer of the first/)
  })

  test('a failure that is final', async () => {
    const { app, expectations } = payouts({ isSuccess: () => true })
    await breaks(app(true), expectations, /^a failure is final: the retry was given the first failure again/)
  })

  test('an effect that is repeated after a crash', async () => {
    const { app, expectations } = payouts({ derives: false })
    await breaks(app(true), expectations, /^the effect took place twice: the first attempt died after it.*deriveKey/s)
  })

  test.each([
    ['a status of the client’s mistakes', { lostStatus: 400 }],
    ['an `isCertainFailure` that is sure of all', { isCertainFailure: () => true }],
  ])('an effect that was hidden by %s', async (_what, faults) => {
    const { app, expectations } = payouts(faults)
    await breaks(
      app(true),
      expectations,
      /^the effect took place twice under one key: after `fail\("after"\)` it had taken place, but the outcome was certain/,
    )
  })

  test.each([
    ['at once', 'never'],
    ['once its effect has failed', 'after a failure'],
  ])('a handler that does not answer, %s', async (_when, answers) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { pay, expectations } = payouts()
    const hanging = gate()
    const app = onFetch({ store: new MemoryStore(), scope: () => 'acme' })(async (_request, operation) => {
      try {
        if (answers !== 'never') return Response.json(pay(operation?.deriveKey('bank')), { status: 201 })
      } catch {}
      hanging.open()
      return new Promise(() => {})
    })
    const broken = breaks(
      (request: Request) => app(request),
      expectations,
      /^a request was not answered\..*30 seconds/s,
    )
    await hanging.opened
    await vi.advanceTimersByTimeAsync(30_000)
    await broken
  })

  test('a request that does not succeed, and a `fail` that does nothing', async () => {
    const { app, expectations } = payouts({ required: true, header: 'X-Key' })
    await breaks(app(true), expectations, /^the first request was not carried out: .*key_missing/s)
    const other = payouts()
    await breaks(
      other.app(true),
      { fail: () => {} },
      /^the request was answered with a success, although `fail\("before"\)`/,
    )
  })

  test('a retry that believes that its effect took place', async () => {
    const { app, expectations } = payouts({ believes: true })
    await breaks(app(true), expectations, /^the retry of a failure .* a success, but the effect never took place/)
  })

  test('a repeat that is refused, which is no second run', async () => {
    let requests = 0
    const { app } = payouts()
    const limited = express()
      .use((_req, res, next) => (++requests === 2 ? res.sendStatus(429) : next()))
      .use(app(true))
    await breaks(limited, {}, /^the repeat did not get the first answer: it was refused.*429/s)
  })

  test.each([{}, undefined, null, 5])('an application of an unknown kind: %o', async (app) => {
    const error = await expectOnce(app as never, REQUEST).catch((error) => error)
    expect(error.message).toMatch(/^expectOnce cannot send to this application.*app\.callback\(\)/s)
  })

  test.each([
    ['a text', '1'],
    ['a bigint', 1n],
    ['nothing', undefined],
    ['no number', Number.NaN],
  ])('`effects` that count in %s', async (_what, count) => {
    const { app } = payouts()
    const effects = () => count as number
    await expect(expectOnce(app(true), REQUEST, { effects })).rejects.toThrow(
      /^`effects` returned .* as a number\..*Number\(/,
    )
  })

  test.each([
    ['of another name, with which nothing would be counted', { effect: () => 1 }, 'effect: did you mean effects'],
    ['of one request at once, which is no race', { atOnce: 1 }, 'atOnce: expected an integer from 2'],
    ['of another kind', { fail: 'before' }, 'fail: expected a function'],
  ])('an option %s', async (_what, options, message) => {
    const { app } = payouts()
    await expect(expectOnce(app(true), REQUEST, options as object)).rejects.toThrow(message)
  })

  test('a request that is missing', async () => {
    const { app } = payouts()
    await expect(expectOnce(app(true), undefined as never)).rejects.toThrow(/^expectOnce needs a request .* path: /)
  })
})

describe('reaches', () => {
  const options = { store: new MemoryStore(), scope: () => 'acme' }
  const answer = { id: 'po_1' }
  const hono = new Hono().use(onHono(options)).post('/payouts', (c) => c.json(answer))
  const handler = onFetch(options)(async () => Response.json(answer))

  const apps: readonly [string, () => Promise<{ app: OnceApp; close?: () => unknown }>][] = [
    ['a server that does not listen yet', async () => ({ app: createServer(payouts().app(true)) })],
    [
      'a server that listens, which goes on',
      async () => {
        const app = createServer(payouts().app(true))
        await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve))
        return {
          app,
          close() {
            expect(app.listening).toBe(true)
            app.close()
          },
        }
      },
    ],
    ['an object with fetch', async () => ({ app: hono })],
    ['supertest', async () => ({ app: supertest(payouts().app(true)) })],
    ['an agent of supertest', async () => ({ app: supertest.agent(payouts().app(true)) })],
    [
      'Koa',
      async () => {
        const koa = new Koa().use(bodyParser()).use(onKoa(options))
        koa.use(async (ctx) => {
          ctx.body = answer
        })
        return { app: koa.callback() }
      },
    ],
    ['a Fetch function', async () => ({ app: (request: Request) => handler(request) })],
    [
      'Fastify',
      async () => {
        const app = fastify()
        await app.register(onFastify, options)
        app.post('/payouts', async () => answer)
        return { app, close: () => app.close() }
      },
    ],
    [
      'anything else, by `send`',
      async () => ({
        app: {
          send: async ({ path, ...init }) => {
            const response = await hono.request(path, init)
            return {
              status: response.status,
              headers: Object.fromEntries(response.headers),
              body: await response.text(),
            }
          },
        },
      }),
    ],
  ]

  test.each(apps)('%s', async (_name, open) => {
    const { app, close } = await open()
    expect((await expectOnce(app, REQUEST)).checked).toEqual(ALL.slice(0, 3))
    await close?.()
  })
})

describe('an error page of Express is shown as text', () => {
  const LONG = 'It failed for a reason that takes many words to tell. '.repeat(20)

  async function shownFor(error: Error): Promise<string> {
    const app = express().post('/payouts', () => {
      throw error
    })
    app.set('env', 'development')
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const { message } = await expectOnce(app, REQUEST).then(
      () => new Error('nothing was broken'),
      (broken: Error) => broken,
    )
    return message
  }

  test('whole, up to the cause at its end, without the markup', async () => {
    const shown = await shownFor(new Error(`${LONG}The client said: "duplicate key <7>"`))
    expect(shown).toContain('500 Error: It failed for a reason')
    expect(shown).toContain('The client said: "duplicate key <7>"')
    expect(shown).not.toMatch(/&nbsp;|<br>|<pre>|DOCTYPE/)
  })

  test('with the first lines of the stack, and what stands behind it', async () => {
    const error = new Error('The payout failed.')
    error.stack = [
      'Error: The payout failed.',
      ...Array.from(
        { length: 40 },
        (_, i) => `    at step${i} (/app/node_modules/some-package/with/a/long/path.js:${i}:1)`,
      ),
      'Caused by: Error: the bank is closed',
    ].join('\n')
    const shown = await shownFor(error)
    expect(shown).toContain('at step0 ')
    expect(shown).not.toContain('at step3 ')
    expect(shown).toContain('Caused by: Error: the bank is closed')
  })
})
