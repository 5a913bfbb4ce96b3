import type { AddressInfo } from 'node:net'
import { parse as parseForm } from 'node:querystring'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest, fastify } from 'fastify'
import { idempotency } from 'once-per-key/fastify'
import { bindOptions } from 'once-per-key/testing'
import { FASTIFYS } from '../../../versions/fastify.js'
import type { Framework, Reply } from '../framework.js'

const LIMIT = 1_048_576

/** Fastify, with an error handler where the application has one. */
const onFastify = (name: string, create: typeof fastify): Framework => ({
  name,
  async start(app) {
    const server = create({ bodyLimit: LIMIT, forceCloseConnections: true, onProtoPoisoning: 'ignore' })
    server.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
      done(null, parseForm(body.toString())),
    )
    server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    const options = bindOptions(app, (request: FastifyRequest, name) => request.headers[name]?.toString())
    if (app.isProtected) await server.register(idempotency, options)
    const { onError } = app
    if (onError !== undefined) server.setErrorHandler((error, _request, reply) => answer(reply, onError(error)))
    server.all('/*', async (request, reply) => {
      const { idempotency: run, body } = request
      return answer(reply, await app.handler({ idempotency: run, json: () => body, bytes: () => body as Uint8Array }))
    })
    await server.listen({ port: 0, host: '127.0.0.1' })
    const { port } = server.server.address() as AddressInfo
    return { port, server: server.server, once: server.idempotency, close: () => server.close() }
  },
})

export const ON_FASTIFY: readonly Framework[] = FASTIFYS.map(({ name, create }) => onFastify(name, create))

function answer(
  reply: FastifyReply,
  { status, headers = [], json, text, bytes, stream, redirect }: Reply,
): FastifyReply {
  const lines = new Map<string, string[]>()
  for (const [name, value] of headers) lines.set(name, [...(lines.get(name) ?? []), value])
  for (const [name, values] of lines) reply.header(name, values.length === 1 ? values[0] : values)
  if (redirect !== undefined) return reply.code(status ?? 302).redirect(redirect)
  reply.code(status ?? 200)
  if (json !== undefined) return reply.send(json)
  if (stream !== undefined) return reply.send(Readable.from(stream, { objectMode: false }))
  return reply.send(bytes === undefined ? text : Buffer.from(bytes))
}
