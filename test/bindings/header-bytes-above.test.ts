import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { type RawReply, request } from '../support/raw-client.js'
import { FASTIFYS, type Settings, serveFastify, serveKoa } from './served.js'

// Node encodes what is not ASCII in a head as the body behind it begins. Where a framework hands its answer over before it is
// written, the record has the bytes that leave.

const BODIES: readonly { readonly what: string; readonly body: () => unknown; readonly isOwn?: false }[] = [
  { what: 'text', body: () => 'für' },
  { what: 'bytes', body: () => Buffer.from('für') },
  { what: 'no body', body: () => null },
  { what: 'an empty text', body: () => '' },
  // Sent in one piece, where the framework alone would send text.
  { what: 'JSON', body: () => ({ paid: 'für' }), isOwn: false },
  { what: 'a stream', body: () => Readable.from(['für'], { objectMode: false }), isOwn: false },
]

const HEADERS: readonly { readonly what: string; readonly headers: Record<string, string | string[]> }[] = [
  { what: 'Latin-1', headers: { 'X-Name': 'Zoë £' } },
  { what: 'several lines', headers: { 'X-Name': ['Zoë', 'plain', 'Größe'] } },
  { what: 'a Content-Disposition in Latin-1', headers: { 'Content-Disposition': 'attachment; filename="Zoë.pdf"' } },
  {
    what: 'a Content-Disposition in UTF-8',
    headers: { 'Content-Disposition': Buffer.from('attachment; filename="Zoë €.pdf"').toString('latin1') },
  },
  { what: 'a reason phrase', headers: { Reason: 'Größe' } },
]

type Port = Promise<{ readonly port: number }>

const ON: readonly {
  readonly name: string
  serve(headers: Record<string, string | string[]>, body: () => unknown, settings?: Settings): Port
}[] = [
  {
    name: 'Koa',
    serve: (headers, body, settings) =>
      serveKoa({
        ...settings,
        handler(ctx) {
          ctx.body = body()
          ctx.status = ctx.body === null ? 204 : 201
          for (const [name, value] of Object.entries(headers)) {
            if (name === 'Reason') ctx.message = value as string
            else ctx.set(name, value)
          }
        },
      }),
  },
  ...FASTIFYS.map(({ name, create }) => ({
    name,
    serve: (headers: Record<string, string | string[]>, body: () => unknown, settings?: Settings) =>
      serveFastify(create, {
        ...settings,
        routes: (app) =>
          app.post('/', async (_request, reply) => {
            const { Reason, ...others } = headers
            if (Reason !== undefined) reply.raw.statusMessage = Reason as string
            return reply.code(201).headers(others).send(body())
          }),
      }),
  })),
]

const COMPARED = new Set(['x-name', 'content-disposition'])

function bytesOf({ status, statusMessage, headers }: RawReply): unknown {
  return [status, statusMessage, headers.filter(([name]) => COMPARED.has(name.toLowerCase()))]
}

describe.each(ON)('$name', ({ name, serve }) => {
  describe.each(HEADERS)('$what', ({ headers }) => {
    // Fastify 4 writes an empty text before it ends.
    const bodies = BODIES.filter(({ what }) => name !== 'Fastify 4' || what !== 'an empty text')

    test.each(bodies)('before $what: first answer and replay have the same bytes', async ({ body, isOwn = true }) => {
      const [plain, { port }] = [await serve(headers, body, { isProtected: false }), await serve(headers, body)]
      const own = await request(plain.port, { key: 'k' })
      const [first, replay] = [await request(port, { key: 'k' }), await request(port, { key: 'k' })]
      if (isOwn) expect(bytesOf(first)).toEqual(bytesOf(own))
      expect(bytesOf(replay)).toEqual(bytesOf(first))
      expect([first.body, replay.body]).toEqual([own.body, own.body])
      expect(replay.header('Idempotent-Replayed')).toBe('true')
    })
  })
})
