import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, expect, test } from 'vitest'
import { BINDINGS, BINDINGS_AND_STACKS, type ErrorStep, type Step } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { connectTo, type RawReply, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'
import { essenceOf } from './same-answer.js'

interface Failure {
  readonly name: string
  readonly fail: Step
  /** A refusal, which is certainly without effect. */
  readonly isCertain?: true
  readonly needsRejections?: true
  readonly onError?: ErrorStep
}

const answerWith500: ErrorStep = (err, _req, res, _next) => {
  res.statusCode = 500
  res.end(`Sorry: ${err.message}`)
}

/** Failures that the client is told of. */
const TOLD: readonly Failure[] = [
  {
    name: 'a sync throw',
    fail() {
      throw new Error('no money')
    },
  },
  { name: 'next(err)', fail: (_req, _res, next) => next(new Error('no money')) },
  {
    name: 'a late next(err)',
    fail: (_req, _res, next) => void setImmediate(() => next(new Error('no money'))),
  },
  {
    name: 'next(err) and an error handler',
    onError: answerWith500,
    fail: (_q, _s, next) => next(new Error('no money')),
  },
  {
    name: 'a rejection',
    needsRejections: true,
    async fail() {
      await null
      throw new Error('no money')
    },
  },
  {
    name: 'an answer of 400',
    isCertain: true,
    fail(_req, res) {
      res.statusCode = 400
      res.end('no amount')
    },
  },
  {
    name: 'an answer of 503 in pieces',
    fail(_req, res) {
      res.writeHead(503, { 'Content-Type': 'text/plain' })
      res.write('come ')
      setImmediate(() => res.end('back'))
    },
  },
  {
    name: 'a redirect that asks for the same request again (307)',
    fail: (_req, res) => res.writeHead(307, { Location: '/elsewhere' }).end(),
  },
  {
    name: 'a failure that streams',
    fail(_req, res) {
      res.statusCode = 500
      res.flushHeaders()
      setImmediate(() => res.end('sorry'))
    },
  },
]

/** Failures that end in a closed connection. */
const CUT: readonly Failure[] = [
  {
    name: 'a sync throw after a partial write',
    fail(_req, res) {
      res.write('half')
      throw new Error('no money')
    },
  },
  {
    name: 'a rejection after a partial write',
    needsRejections: true,
    async fail(_req, res) {
      res.write('half')
      await null
      throw new Error('no money')
    },
  },
  {
    name: 'next(err) after writeHead',
    fail(_req, res, next) {
      res.writeHead(200)
      setImmediate(() => next(new Error('no money')))
    },
  },
  {
    name: 'next(err) after a partial write, and an error handler that answers all the same',
    onError: answerWith500,
    fail(_req, res, next) {
      res.write('half')
      setImmediate(() => next(new Error('no money')))
    },
  },
  {
    name: 'next(err) after writeHead, and an error handler that answers all the same',
    onError: answerWith500,
    fail(_req, res, next) {
      res.writeHead(200)
      next(new Error('no money'))
    },
  },
  {
    name: 'destroy() before anything',
    fail: (_req, res) => res.destroy(),
  },
  {
    name: 'destroy(err) after a partial write',
    fail(_req, res) {
      res.write('half')
      res.destroy(new Error('no money'))
    },
  },
  {
    name: 'res.socket.destroy()',
    fail: (_req, res) => res.socket.destroy(),
  },
  {
    name: 'a source that fails in the middle of a pipe',
    fail(_req, res, next) {
      failingSource().on('error', next).pipe(res)
    },
  },
  {
    name: 'a source that fails in the middle of a pipeline',
    fail: (_req, res) => pipeline(failingSource(), res).catch(() => {}),
  },
]

function failingSource(): Readable {
  return Readable.from(
    (async function* () {
      yield 'half'
      await new Promise((resolve) => setImmediate(resolve))
      throw new Error('the source broke')
    })(),
  )
}

describe.each(BINDINGS_AND_STACKS)('$name', ({ binding, stack }) => {
  const applies = ({ needsRejections }: Failure) => binding.seesRejections || !needsRejections

  test.each(TOLD.filter(applies))(
    '$name releases the key before its failure is sent',
    async ({ fail, isCertain = false, onError }) => {
      const seen: unknown[] = []
      const handler: Step = (req, res, next) => {
        if (req.idempotency !== undefined) seen.push([req.idempotency.attempt, req.idempotency.previousOutcome])
        if (broken) return fail(req, res, next)
        res.end('paid')
      }
      let broken = true
      const setting = { stack, ...(onError && { onError }) }
      const plain = await serve(binding, handler, { ...setting, isProtected: false })
      const serving = await serve(binding, handler, setting)
      const own = await request(plain.port, { key: 'k', body: { amount: 0 } })

      const retry = connectTo(serving.port)
      const wrong = connectTo(serving.port)
      // In the callback that brings the failure's first byte: no turn of the loop lies between them.
      wrong.socket.once('data', () => {
        broken = false
        retry.send({ key: 'k', body: { amount: 0 } })
      })
      wrong.send({ key: 'k', body: { amount: 0 } })

      const failure = await wrong.reply()
      expect(withoutStack(failure)).toEqual(withoutStack(own))
      expect((await retry.reply()).body.toString()).toBe('paid')
      expect(seen).toEqual([
        [1, 'none'],
        [2, isCertain ? 'failed' : 'unknown'],
      ])
      const replay = await request(serving.port, { key: 'k', body: { amount: 0 } })
      expect(replay.header('Idempotent-Replayed')).toBe('true')
      expect(replay.body.toString()).toBe('paid')
    },
  )

  test.each(CUT.filter(applies))('$name frees the key, and closes the connection', async ({ fail, onError }) => {
    let runs = 0
    const handler: Step = (req, res, next) => (++runs === 1 ? fail(req, res, next) : res.end('paid'))
    const serving = await serve(binding, handler, { stack, ...(onError && { onError }) })

    const retry = connectTo(serving.port)
    const cut = connectTo(serving.port)
    cut.socket.once('close', () => retry.send({ key: 'k' }))
    cut.send({ key: 'k' })
    await cut.closed
    expect(cut.received().toString('latin1')).not.toContain('200 OK')
    expect((await retry.reply()).body.toString()).toBe('paid')
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'failed', 'claimed', 'completed'])
    await serving.once.idle()
  })
})

describe.each(BINDINGS)('$name', (binding) => {
  test('a retry during a release finds the key in flight, and no byte is sent before it', async () => {
    const released = gate()
    const releasing = gate()
    const { MemoryStore } = await import('once-per-key/memory')
    const store = new MemoryStore()
    const release = store.release.bind(store)
    store.release = async (...args) => {
      releasing.open()
      await released.opened
      return release(...args)
    }
    const serving = await serve(
      binding,
      (_req, res) => {
        res.statusCode = 422
        res.end('no')
      },
      { options: { store } },
    )
    const client = connectTo(serving.port)
    client.send({ key: 'k' })
    await releasing.opened
    expect((await request(serving.port, { key: 'k' })).json()).toMatchObject({ code: 'in_flight' })
    expect(client.received()).toHaveLength(0)
    released.open()
    expect((await client.reply()).status).toBe(422)
  })

  test('another success’s status that is set behind the head changes nothing', async () => {
    const handler: Step = (_req, res) => {
      res.write('paid')
      res.statusCode = 202
      res.end()
    }
    const serving = await serve(binding, handler)
    for (const replayed of [undefined, 'true']) {
      const reply = await request(serving.port, { key: 'k' })
      expect([reply.status, reply.body.toString(), reply.header('Idempotent-Replayed')]).toEqual([
        200,
        'paid',
        replayed,
      ])
    }
  })

  test('isSuccess decides what is a failure', async () => {
    let runs = 0
    const serving = await serve(binding, (_req, res) => res.end(`run ${++runs}`), {
      options: { isSuccess: (answer) => answer.body?.toString() !== 'run 1' },
    })
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('run 1')
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('run 2')
    expect((await request(serving.port, { key: 'k' })).header('Idempotent-Replayed')).toBe('true')
  })
})

/** Error pages show where the error was thrown, which differs. */
function withoutStack(reply: RawReply): unknown {
  const essence = essenceOf(reply) as { body: string }
  return { ...essence, body: essence.body.split('at ')[0] }
}
