import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import {
  BINDINGS,
  BINDINGS_AND_STACKS,
  type Binding,
  type ErrorStep,
  type Next,
  type Step,
} from '../support/bindings.js'
import { connectTo, decoded, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

const ANSWER = Buffer.alloc(1_000_000, 'paid ')

interface LateError {
  readonly name: string
  readonly handler: Step
  readonly applies?: (binding: Binding) => boolean
  readonly onError?: ErrorStep
}

const oops = () => new Error('after the answer')

const LATE_ERRORS: readonly LateError[] = [
  {
    name: 'a sync throw',
    handler(_req, res) {
      res.end(ANSWER)
      throw oops()
    },
  },
  {
    name: 'a rejection',
    applies: ({ seesRejections }) => seesRejections,
    async handler(_req, res) {
      res.end(ANSWER)
      await null
      throw oops()
    },
  },
  {
    name: 'next(err)',
    handler(_req, res, next) {
      res.end(ANSWER)
      next(oops())
    },
  },
  {
    name: 'a late next(err)',
    handler(_req, res, next) {
      res.end(ANSWER)
      setImmediate(() => next(oops()))
    },
  },
  {
    name: 'an error handler that answers all the same',
    handler(_req, res, next) {
      res.end(ANSWER)
      next(oops())
    },
    onError(_err, _req, res, _next) {
      res.statusCode = 500
      res.end('sorry')
    },
  },
  {
    name: 'an error handler that destroys the response',
    handler(_req, res, next) {
      res.end(ANSWER)
      next(oops())
    },
    onError: (_err, _req, res, _next) => res.destroy(),
  },
  {
    name: 'an error handler that destroys the response’s socket',
    handler(_req, res, next) {
      res.end(ANSWER)
      next(oops())
    },
    onError: (_err, _req, res, _next) => res.socket.destroy(),
  },
]

describe.each(BINDINGS_AND_STACKS)('$name', ({ binding, stack }) => {
  const applying = LATE_ERRORS.filter(({ applies }) => applies?.(binding) ?? true)

  test.each(applying)('after the handler’s end, $name does not cost the client its answer', async (late) => {
    const setting = { stack, ...(late.onError && { onError: late.onError }) }
    const serving = await serve(binding, late.handler, setting)
    const first = await request(serving.port, { key: 'k' })
    expect(first.status).toBe(200)
    expect(first.body.equals(ANSWER)).toBe(true)

    const replay = await request(serving.port, { key: 'k' })
    expect(replay.status).toBe(200)
    expect(replay.body.equals(ANSWER)).toBe(true)
    expect(replay.header('Idempotent-Replayed')).toBe('true')
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'replayed'])
  })
})

describe.each(BINDINGS)('$name', (binding) => {
  test.each([
    { name: 'next(err)', late: (_res, next) => next(oops()) },
    { name: 'destroy()', late: (res) => res.destroy() },
    { name: 'destroy(err)', late: (res) => res.destroy(oops()) },
    { name: 'a second end', late: (res) => res.end('twice') },
  ] satisfies { name: string; late: (res: ServerResponse, next: Next) => unknown }[])(
    'a client that reads slowly gets all of its answer, whatever the handler does meanwhile: $name',
    async ({ late }) => {
      const answer = Buffer.alloc(8_000_000, 'paid ') // More than the sockets' own buffers take.
      let fail: (() => void) | undefined
      const handler: Step = (_req, res, next) => {
        fail = () => void late(res, next)
        res.end(answer)
      }
      const serving = await serve(binding, handler, { options: { maxAnswerBytes: answer.length } })
      const slow = connectTo(serving.port)
      slow.socket.once('data', () => {
        slow.socket.pause()
        fail?.()
        setImmediate(() => slow.socket.resume())
      })
      slow.send({ key: 'k' })
      expect((await slow.reply()).body.equals(answer)).toBe(true)
      expect(decoded(await request(serving.port, { key: 'k' })).equals(answer)).toBe(true)
    },
  )

  test('a hook on the head that throws is the application’s error, and the process lives', async () => {
    const breaking: Step = (_req, res, next) => {
      const writeHead = res.writeHead
      res.writeHead = function (status: number, ...rest: unknown[]) {
        if (status === 201) throw new Error('a broken hook')
        return writeHead.call(this, status, ...rest)
      }
      next()
    }
    const onError: ErrorStep = (err, _req, res, _next) => {
      res.statusCode = 500
      res.setHeader('Content-Type', 'text/plain')
      res.end(`Sorry: ${err.message}`)
    }
    const handler: Step = (_req, res) => {
      res.setHeader('X-Receipt', '17')
      res.statusCode = 201
      res.end('paid')
    }
    const serving = await serve(binding, handler, { before: [breaking], onError })
    const client = connectTo(serving.port)
    for (let i = 0; i < 2; i++) {
      client.send({ key: 'k' })
      const reply = await client.reply()
      expect(reply.status).toBe(500)
      expect(reply.body.toString()).toBe('Sorry: a broken hook')
    }
    expect(serving.runs()).toBe(1)
    await serving.once.idle()
  })
})
