import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { connectTo } from '../support/raw-client.js'
import { serve as serveNode } from '../support/serve.js'
import { FASTIFYS, type Settings, serveFastify, serveKoa } from './served.js'

// RFC 9112 §6.2: "A sender MUST NOT send a Content-Length header field in any message that contains a Transfer-Encoding header
// field." Node's clients refuse such a message.

type Port = Promise<{ readonly port: number }>

interface On {
  readonly name: string
  serve(coding: string, body: () => unknown, settings?: Settings): Port
}

const ON: readonly On[] = [
  ...BINDINGS.map((binding) => ({
    name: binding.name,
    serve(coding: string, body: () => unknown, settings?: Settings): Port {
      const handler: Step = (_req, res) => {
        res.setHeader('Transfer-Encoding', coding)
        const made = body()
        if (made instanceof Readable) return made.pipe(res)
        if (!Buffer.isBuffer(made) && typeof made !== 'string') return res.end(JSON.stringify(made))
        if (binding.isExpress) return res.send(made)
        res.setHeader('Content-Length', Buffer.byteLength(made))
        res.end(made)
      }
      return serveNode(binding, handler, settings)
    },
  })),
  {
    name: 'Koa',
    serve: (coding, body, settings) =>
      serveKoa({
        ...settings,
        handler(ctx) {
          ctx.body = body()
          ctx.set('Transfer-Encoding', coding)
        },
      }),
  },
  ...FASTIFYS.map(({ name, create }) => ({
    name,
    serve: (coding: string, body: () => unknown, settings?: Settings) =>
      serveFastify(create, {
        ...settings,
        routes: (app) =>
          app.post('/', async (_request, reply) => reply.header('Transfer-Encoding', coding).send(body())),
      }),
  })),
]

const BODIES: readonly { readonly what: string; readonly body: () => unknown; readonly sent: string }[] = [
  { what: 'text', body: () => 'paid', sent: 'paid' },
  { what: 'bytes', body: () => Buffer.from('paid'), sent: 'paid' },
  { what: 'JSON', body: () => ({ paid: true }), sent: '{"paid":true}' },
  { what: 'a stream', body: () => Readable.from(['pa', 'id'], { objectMode: false }), sent: 'paid' },
]

const CODINGS = BODIES.flatMap((body) =>
  ['chunked', 'identity'].flatMap((coding) =>
    (['1.1', '1.0'] as const).map((version) => ({ ...body, coding, version })),
  ),
)

describe.each(ON)('$name', ({ serve }) => {
  test.each(CODINGS)('$what, as "$coding", over HTTP/$version has one framing', async (each) => {
    const { port } = await serve(each.coding, each.body)
    for (const replayed of [undefined, 'true']) {
      const client = connectTo(port)
      client.send({ key: 'k', version: each.version })
      const reply = await client.reply()
      client.socket.destroy()
      expect([reply.status, reply.body.toString(), reply.header('Idempotent-Replayed')]).toEqual([
        200,
        each.sent,
        replayed,
      ])
      const framings = ['Transfer-Encoding', 'Content-Length'].filter((name) => reply.header(name) !== undefined)
      expect(framings).toHaveLength(1)
    }
  })

  test('an answer whose transfer coding changes its content is not kept', async () => {
    const { port } = await serve('gzip, chunked', () => Buffer.from('1f8b', 'hex'))
    const client = connectTo(port)
    client.send({ key: 'k' })
    await client.firstByte
    client.socket.destroy()
    const again = connectTo(port)
    again.send({ key: 'k' })
    expect((await again.reply()).json()).toMatchObject({ code: 'answer_not_kept' })
    again.socket.destroy()
  })

  test('a stream that is not kept, with a length besides, has one framing', async () => {
    const body = () => Readable.from([Buffer.alloc(2_000), Buffer.alloc(2_000)])
    const { port } = await serve('chunked', body, { options: { maxAnswerBytes: 1_000 } })
    const client = connectTo(port)
    client.send({ key: 'k' })
    const reply = await client.reply()
    client.socket.destroy()
    expect(reply.body).toHaveLength(4_000)
    expect([reply.header('Transfer-Encoding'), reply.header('Content-Length')]).toEqual(['chunked', undefined])
  })
})
