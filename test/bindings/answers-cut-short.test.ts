import { Readable } from 'node:stream'
import { fastify } from 'fastify'
import { describe, expect, test } from 'vitest'
import { connectTo } from '../support/raw-client.js'
import { type Served, serveFastify, serveKoa } from './served.js'

// As in test/node/answers-cut-short.test.ts, where the framework has the answer's body: half a JSON was counted anew, or was sent
// as it was and replayed as a whole success.

const HALF = '{"id":"po_1","amount":'
const ANNOUNCED = { 'Content-Type': 'application/json', 'Content-Length': '40' }

const bytes = () => Readable.from([HALF], { objectMode: false })

const SERVED: readonly { readonly name: string; readonly serve: (options: object) => Promise<Pick<Served, 'port'>> }[] =
  [
    {
      name: 'Fastify',
      serve: (options) =>
        serveFastify(fastify, {
          options,
          routes: (app) => app.post('/', (_request, reply) => reply.headers(ANNOUNCED).send(bytes())),
        }),
    },
    {
      name: 'Koa',
      serve: (options) =>
        serveKoa({
          options,
          handler(ctx) {
            ctx.body = bytes()
            ctx.set(ANNOUNCED)
          },
        }),
    },
    {
      name: 'Koa, with a string',
      serve: (options) =>
        serveKoa({
          options,
          handler(ctx) {
            ctx.body = HALF
            ctx.set(ANNOUNCED)
          },
        }),
    },
  ]

const LIMITS = [
  { size: 'an answer', options: {} },
  { size: 'an answer that is too large to keep', options: { maxAnswerBytes: 8 } },
]

describe.each(SERVED)('$name', ({ serve }) => {
  test.each(LIMITS)('$size that is cut short reaches its client as such, and is not replayed', async ({ options }) => {
    const { port } = await serve(options)
    const client = connectTo(port)
    client.send({ path: '/', key: 'k' })
    await client.firstByte
    const received = () => client.received().toString('latin1')
    await expect.poll(received).toMatch(/content-length: 40\r\n[\s\S]*\r\n\r\n\{"id":"po_1","amount":$/i)
    client.socket.destroy()
    const again = connectTo(port)
    again.send({ path: '/', key: 'k' })
    expect((await again.reply()).json()).toMatchObject({ code: 'answer_not_kept' })
  })
})
