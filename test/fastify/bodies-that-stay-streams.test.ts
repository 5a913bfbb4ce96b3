import { buffer } from 'node:stream/consumers'
import { fastify } from 'fastify'
import { idempotency, singleTenant, withoutBody } from 'once-per-key/fastify'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'

/** As @fastify/http-proxy does: the body stays a stream, which the handler passes on. */
async function serveProxy(options: object) {
  const app = fastify()
  onTestFinished(() => app.close())
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
  await app.register(idempotency, { store: new MemoryStore(), scope: singleTenant, ...options })
  const upstream: string[] = []
  app.post('/payouts', async (request, reply) => {
    upstream.push((await buffer(request.body as NodeJS.ReadableStream)).toString())
    return reply.code(201).send({ paid: true })
  })
  const address = await app.listen({ port: 0, host: '127.0.0.1' })
  const post = async (digest: string) => {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': 'k', 'Content-Digest': digest }
    const response = await fetch(`${address}/payouts`, { method: 'POST', headers, body: '{"amount":1}' })
    return { status: response.status, json: (await response.json()) as { message?: string } }
  }
  return { post, upstream }
}

test('a body that stays a stream is refused by a message that shows withoutBody', async () => {
  const { post, upstream } = await serveProxy({})
  const { status, json } = await post('sha-256=:a:')
  expect(status).toBe(500)
  expect(json.message).toContain('is a stream that nobody has read, as behind a proxy')
  expect(json.message).toContain("`fingerprint: withoutBody((req) => req.headers['content-digest'] ?? null)`")
  expect(upstream).toEqual([])
})

test('with it, a proxy passes each operation on once', async () => {
  const fingerprint = withoutBody(
    ({ headers }: { headers: Record<string, unknown> }) => headers['content-digest'] ?? null,
  )
  const { post, upstream } = await serveProxy({ fingerprint })
  expect((await post('sha-256=:a:')).status).toBe(201)
  expect((await post('sha-256=:a:')).status).toBe(201)
  expect((await post('sha-256=:b:')).status).toBe(409)
  expect(upstream).toEqual(['{"amount":1}'])
})
