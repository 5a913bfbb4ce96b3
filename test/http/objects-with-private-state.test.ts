import { createContext, runInContext } from 'node:vm'
import express, { type RequestHandler } from 'express'
import { type IdempotencyOptions, type IdempotencyRequest, idempotency } from 'once-per-key'
import { fingerprintOf } from 'once-per-key/core'
import { bodyField, computeRequestFingerprint } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { mustNotRun, OPERATION, rejection, runnerOnTrial } from '../run/runner-on-trial.js'
import { listen } from '../support/bindings.js'

// An object with private fields, or with accessors of its class, has no members of its own, so it counted as `{}`: a payout of 900 to Bob
// got the response of one of 1 to Ann.

class Payout {
  readonly #sent: { amount: number; to: string }
  constructor(sent: { amount: number; to: string }) {
    this.#sent = sent
  }
  get amount() {
    return this.#sent.amount
  }
  get to() {
    return this.#sent.to
  }
}

class Lines extends Array<number> {
  readonly #total = 7
  get total() {
    return this.#total
  }
}

function extendsNull(): object {
  function Old() {}
  Old.prototype = Object.create(null, { amount: { get: () => 1 } })
  return Reflect.construct(Old, [])
}

/** As fast-querystring, which Fastify's parser of forms uses. */
function emptyForm(): object {
  function Empty() {}
  Empty.prototype = Object.create(null)
  return Reflect.construct(Empty, [])
}

const ANN = { amount: 1, to: 'Ann' }

const OTHERS: readonly { readonly name: string; readonly value: object; readonly seen: string }[] = [
  { name: 'private fields and accessors', value: new Payout(ANN), seen: 'an object (Payout)' },
  { name: 'a list of a class', value: new Lines(), seen: 'an object (Lines)' },
  {
    name: 'members of its own, beside which others may be',
    value: new (class Sent {
      amount = 1
    })(),
    seen: '(Sent)',
  },
  { name: 'members that it inherits', value: Object.create(ANN), seen: 'an object,' },
  { name: 'accessors on a prototype without one', value: extendsNull(), seen: 'an object,' },
  { name: 'a form', value: new URLSearchParams('amount=1'), seen: 'an object (URLSearchParams)' },
  { name: 'an upload', value: new FormData(), seen: 'an object (FormData)' },
  { name: 'headers', value: new Headers({ amount: '1' }), seen: 'an object (Headers)' },
  { name: 'a boxed text', value: new String('1'), seen: 'an object (String)' },
]

describe.each(OTHERS)('an object with $name', ({ value, seen }) => {
  const inside = [value, [value], { payout: value }]

  test('is misuse in the body of a request, and names the way out', () => {
    for (const body of inside) {
      const says = expect.stringMatching(/plain objects and what has `toJSON`.*Set a `fingerprint\(req\)`/)
      expect(() => computeRequestFingerprint('POST', '/payouts', body)).toThrow(
        expect.objectContaining({ code: 'fingerprint_required', message: says }),
      )
      expect(() => computeRequestFingerprint('POST', '/payouts', body)).toThrow(seen)
    }
  })

  test('is misuse in `fingerprintOf`', () => {
    for (const given of inside) {
      expect(() => fingerprintOf(given)).toThrow(expect.objectContaining({ code: 'value_not_comparable' }))
      expect(() => fingerprintOf(given)).toThrow(seen)
    }
  })

  test('is misuse as the input of a runner', async () => {
    for (const input of inside) {
      const { once, events } = runnerOnTrial()
      expect(await rejection(once({ ...OPERATION, input: input as never }, mustNotRun))).toMatchObject({
        code: 'input_invalid',
      })
      expect(events).toEqual([])
    }
  })
})

describe('what counts as it did', () => {
  const plain = computeRequestFingerprint('POST', '/', { amount: '1', lines: ['2'] })
  const foreign = createContext({})

  test.each([
    { name: 'an object of another realm', body: runInContext("({ lines: ['2'], amount: '1' })", foreign) },
    { name: 'an object without a prototype', body: Object.assign(Object.create(null), { amount: '1', lines: ['2'] }) },
    {
      name: 'what a parser of forms makes, whose prototype is empty',
      body: Object.assign(emptyForm(), { amount: '1', lines: ['2'] }),
    },
    {
      name: 'what has `toJSON`',
      body: new (class {
        readonly #amount = '1'
        toJSON() {
          return { amount: this.#amount, lines: ['2'] }
        }
      })(),
    },
  ])('$name', ({ body }) => {
    expect(computeRequestFingerprint('POST', '/', body)).toBe(plain)
  })

  test('a plain object of another realm is the input of a runner', async () => {
    const { once } = runnerOnTrial()
    await once({ ...OPERATION, input: runInContext('({ a: [1] })', foreign) }, async () => 1)
    expect(await once({ ...OPERATION, input: { a: [1] } as never }, mustNotRun)).toBe(1)
  })
})

describe('behind a validator that makes objects of a class', () => {
  async function start(options: Partial<IdempotencyOptions<IdempotencyRequest>> = {}) {
    const validates: RequestHandler = (req, _res, next) => {
      req.body = new Payout(req.body)
      next()
    }
    const codes: unknown[] = []
    const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', ...options })
    const app = express()
    app.post('/payouts', express.json(), validates, once, (req, res) => void res.json({ to: req.body.to }))
    app.use(((error, _req, res, _next) => {
      codes.push(error.code)
      res.sendStatus(500)
    }) as express.ErrorRequestHandler)
    const { port, close } = await listen(app)
    onTestFinished(close)
    async function send(body: object, key: string | null = 'k') {
      const headers = { 'Content-Type': 'application/json', ...(key !== null && { 'Idempotency-Key': key }) }
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      const response = await fetch(`http://127.0.0.1:${port}/payouts`, init)
      return [response.status, await response.text()]
    }
    return { send, codes }
  }

  test('nothing runs, and Bob does not get the response of Ann', async () => {
    const { send, codes } = await start()
    expect((await send(ANN))[0]).toBe(500)
    expect((await send({ amount: 900, to: 'Bob' }))[0]).toBe(500)
    expect(codes).toEqual(['fingerprint_required', 'fingerprint_required'])
  })

  test('a `fingerprint` that returns such an object is misuse, too', async () => {
    const { send, codes } = await start({ fingerprint: ({ body }) => ({ body }) })
    expect((await send(ANN))[0]).toBe(500)
    expect(codes).toEqual(['fingerprint_required'])
  })

  test('one that returns its members tells them apart', async () => {
    const { send } = await start({ fingerprint: ({ body }) => ({ amount: body.amount, to: body.to }) })
    expect(await send(ANN)).toEqual([200, '{"to":"Ann"}'])
    expect(await send(ANN)).toEqual([200, '{"to":"Ann"}'])
    expect((await send({ amount: 900, to: 'Bob' }))[0]).toBe(409)
  })

  test('a key that is one of its accessors is not missed', async () => {
    const legacyKey = bodyField('to', { deprecatedSince: new Date(0) })
    const { send } = await start({ legacyKey, fingerprint: ({ body }) => ({ amount: body.amount }) })
    expect(await send(ANN, null)).toEqual([200, '{"to":"Ann"}'])
    expect((await send({ amount: 2, to: 'Ann' }, null))[0]).toBe(409)
  })
})

describe('the result of a run or a step', () => {
  test('is not kept as `{}` where all that it has is private, or an accessor', async () => {
    const { once, types } = runnerOnTrial()
    const payout = new Payout(ANN)
    expect(await once(OPERATION, async () => payout as never)).toBe(payout)
    expect(await rejection(once(OPERATION, mustNotRun))).toMatchObject({ code: 'answer_not_kept' })
    expect(types()).toEqual(['claimed', 'result_not_kept', 'completed', 'answer_not_kept'])
  })

  test.each([
    { name: 'without members', made: () => new (class Nothing {})() },
    { name: 'with private fields and accessors', made: () => new Payout(ANN) },
    {
      name: 'with accessors beside its own members',
      made: () =>
        new (class {
          currency = 'EUR'
          get amount() {
            return 1
          }
        })(),
    },
  ])('is misuse of a step: an object $name', async ({ made }) => {
    const { once } = runnerOnTrial()
    const run = once(OPERATION, async (context) => context.step('charge', async () => made() as never))
    expect(await rejection(run)).toMatchObject({ code: 'step_result_invalid' })
  })

  test('is kept where its members are its own, whatever its class', async () => {
    class Charge {
      constructor(readonly id: string) {}
      refund() {}
    }
    const { once } = runnerOnTrial()
    const run = once(OPERATION, (context) => context.step('charge', async () => new Charge('ch_1') as never))
    expect(await run).toEqual({ id: 'ch_1' })
  })
})
