import type { IncomingMessage } from 'node:http'
import { IdempotencyError, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { BINDINGS, BINDINGS_AND_STACKS, type ErrorStep, jsonBody, listen, type Step } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

/** Answers with the error's code. */
const tellCode: ErrorStep = (err, _req, res, _next) => {
  res.statusCode = 500
  res.end(`${err instanceof IdempotencyError} ${err.code}`)
}

describe.each(BINDINGS_AND_STACKS)('$name', ({ binding, stack }) => {
  test.each([
    { name: 'a GET', sent: { method: 'GET', key: 'k' } },
    { name: 'a request without a key', sent: {} },
    { name: 'a request that skip() names', sent: { path: '/skipped', key: 'k' } },
  ])('$name passes untouched', async ({ sent }) => {
    const seen: unknown[] = []
    const handler: Step = (req, res) => {
      seen.push(req.idempotency, Object.hasOwn(res, 'destroy'))
      res.end('passed')
    }
    const skip = (req: unknown) => (req as IncomingMessage).url === '/skipped'
    const serving = await serve(binding, handler, { stack, options: { skip } })
    for (let i = 0; i < 2; i++) {
      const reply = await request(serving.port, sent)
      expect(reply.body.toString()).toBe('passed')
      expect(reply.lines('Idempotent-Replayed')).toEqual([])
    }
    expect(seen).toEqual([undefined, false, undefined, false])
    expect(serving.events).toEqual([])
  })

  test('where a key is required, a request without one is refused', async () => {
    const serving = await serve(binding, (_req, res) => res.end('paid'), { stack, options: { required: true } })
    const refusal = await request(serving.port)
    expect(refusal.status).toBe(400)
    expect(refusal.header('X-Should-Retry')).toBe('false')
    expect(refusal.json()).toMatchObject({ code: 'key_missing', status: 400 })
    expect(serving.runs()).toBe(0)
  })

  test('a middleware that is mounted twice is misuse, and the first claim is released', async () => {
    const store = new MemoryStore()
    const again = idempotency({ store, scope: () => 'acme' })
    const serving = await serve(binding, (_req, res) => res.end('paid'), {
      stack,
      behind: [again as Step],
      onError: tellCode,
      options: { store },
    })
    const reply = await request(serving.port, { key: 'k' })
    expect(reply.status).toBe(500)
    expect(reply.body.toString()).toBe('true mounted_twice')
    expect(serving.runs()).toBe(0)
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'failed'])
    expect((await request(serving.port)).body.toString()).toBe('paid') // Without a key it does no harm.
  })

  test('misuse goes to the application’s errors, and the handler does not run', async () => {
    const serving = await serve(binding, (_req, res) => res.end('paid'), {
      stack,
      onError: tellCode,
      options: { scope: () => undefined },
    })
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('true scope_invalid')
    expect(serving.runs()).toBe(0)
  })

  test('a response that somebody else has begun is not held: the key is released, and nothing is sent twice', async () => {
    const errors: unknown[] = []
    const serving = await serve(binding, (_req, res) => res.end('paid'), {
      stack: {
        ...stack,
        steps: () => [
          ...stack.steps(),
          (_req, res, next) => {
            res.write('wait ')
            next()
          },
        ],
      },
      onError(err, req, _res, _next) {
        errors.push(err.code)
        req.socket.destroy()
      },
    })
    await expect(request(serving.port, { key: 'k' })).rejects.toThrow('closed before a complete reply')
    expect(errors).toEqual(['response_begun'])
    expect(serving.runs()).toBe(0)
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'failed'])
  })

  test('a request that was answered while its key was being claimed does not run, and its key is free', async () => {
    const errors: unknown[] = []
    const timeLimit = (asked: Promise<void>): Step => {
      return (req, res, next) => {
        if (req.headers['x-limited'] === undefined) return next()
        void asked.then(() => {
          res.statusCode = 503
          res.end('too slow')
        })
        next()
      }
    }
    let asked = gate()
    let goOn = gate()
    const serving = await serve(binding, (_req, res) => res.end('paid'), {
      stack,
      before: [(req, res, next) => timeLimit(asked.opened)(req, res, next)],
      onError(err, _req, _res, _next) {
        errors.push(err)
      },
      options: {
        async scope() {
          asked.open()
          await goOn.opened
          return 'acme'
        },
      },
    })
    const limited = { key: 'k', headers: { 'X-Limited': 'yes' } }
    expect((await request(serving.port, limited)).body.toString()).toBe('too slow')
    goOn.open()
    await serving.seen('failed')
    expect(serving.runs()).toBe(0)
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('paid')

    asked = gate()
    goOn = gate()
    expect((await request(serving.port, limited)).body.toString()).toBe('too slow')
    goOn.open()
    await serving.seen('replayed')
    await new Promise((resolve) => setImmediate(resolve))
    expect(errors).toEqual([])
  })
})

describe.each(BINDINGS)('$name', (binding) => {
  test('a handler gets its context', async () => {
    const contexts: Record<string, unknown>[] = []
    const serving = await serve(binding, (req, res) => {
      const { key, scope, attempt, previousOutcome, signal } = req.idempotency
      contexts.push({ key, scope, attempt, previousOutcome, isAborted: signal.aborted })
      contexts.push({ derived: req.idempotency.deriveKey('bank') })
      if (contexts.length < 3) req.idempotency.mayHaveEffect()
      res.statusCode = contexts.length < 3 ? 500 : 200
      res.end()
    })
    await request(serving.port, { key: '"quoted"' })
    await request(serving.port, { key: 'quoted' })
    const [first, derived, second, derivedAgain] = contexts
    expect(first).toEqual({ key: 'quoted', scope: 'acme', attempt: 1, previousOutcome: 'none', isAborted: false })
    expect(second).toEqual({ key: 'quoted', scope: 'acme', attempt: 2, previousOutcome: 'unknown', isAborted: false })
    expect(derivedAgain).toEqual(derived)
  })

  test('idle() waits for the runs that are left', async () => {
    const started = gate()
    const end = gate()
    const serving = await serve(binding, async (_req, res) => {
      started.open()
      await end.opened
      res.end('paid')
    })
    await serving.once.idle()
    const running = request(serving.port, { key: 'k' })
    await started.opened
    let isIdle = false
    const idle = serving.once.idle().then(() => {
      isIdle = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(isIdle).toBe(false)
    end.open()
    await Promise.all([idle, running])
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'completed'])
  })

  test('the path counts from the root, wherever the middleware is mounted', async () => {
    const serving = await serve(binding, (req, res) => res.end(req.originalUrl ?? req.url))
    await request(serving.port, { path: '/payouts?dry=1', key: 'k' })
    expect((await request(serving.port, { path: '/payouts?dry=1', key: 'k' })).status).toBe(200)
    expect((await request(serving.port, { path: '/payouts', key: 'k' })).json()).toMatchObject({ code: 'mismatched' })
  })
})

test('without a framework, a handler that throws reaches the callback of the middleware', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme' })
  let runs = 0
  const running = await listen((req, res) => {
    jsonBody(req, res, () => {
      once(req, res, (err) => {
        if (err !== undefined) {
          res.statusCode = 500
          res.end(`Sorry: ${(err as Error).message}`)
          return
        }
        if (++runs === 1) throw new Error('no money')
        res.end('paid')
      })
    })
  })
  expect((await request(running.port, { key: 'k' })).body.toString()).toBe('Sorry: no money')
  expect((await request(running.port, { key: 'k' })).body.toString()).toBe('paid')
  expect((await request(running.port, { key: 'k' })).header('Idempotent-Replayed')).toBe('true')
  await running.close()
})
