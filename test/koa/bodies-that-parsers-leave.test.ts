import { text } from 'node:stream/consumers'
import Koa from 'koa'
import bodyParser from 'koa-bodyparser'
import { idempotency, singleTenant } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listen } from '../support/bindings.js'

// koa-bodyparser sets `{}` on a request whose content type it does not know, although something else has read its body.

interface Sent {
  readonly type: string
  readonly body: string
}

/** `elsewhere`: the property of Koa's request into which other middleware reads the bodies that the parser does not know. */
async function serve(elsewhere: string | null) {
  const errors: unknown[] = []
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
  const app = new Koa()
  app.on('error', (error) => errors.push(error.code))
  app.use(async (ctx, next) => {
    if (elsewhere !== null) Object.assign(ctx.request, { [elsewhere]: await text(ctx.req) })
    await next()
  })
  app.use(bodyParser()).use(once)
  app.use((ctx) => {
    ctx.body = { paid: true }
  })
  const { port, close } = await listen(app.callback())
  onTestFinished(close)
  onTestFinished(() => once.idle())
  async function post({ type, body }: Sent) {
    const headers = { 'Idempotency-Key': 'k', ...(type !== '' && { 'Content-Type': type }) }
    const sent = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: Buffer.from(body) })
    return sent.status
  }
  return { post, errors }
}

describe.each(['rawBody', 'bytes'])('a body that other middleware has read into %s', (elsewhere) => {
  test.each(['application/vnd.acme+json', ''])('of the type "%s" is not taken for {}', async (type) => {
    const { post, errors } = await serve(elsewhere)
    expect(await post({ type, body: '{"amount":1}' })).toBe(500)
    expect(await post({ type, body: '{"amount":2}' })).toBe(500)
    expect(errors).toEqual(['fingerprint_required', 'fingerprint_required'])
  })
})

test.each([
  { type: 'application/json', body: '{}' },
  { type: 'application/json', body: ' {\n} ' },
  { type: 'application/x-www-form-urlencoded', body: '&' },
  { type: '', body: '' },
])('$body of the type "$type" is the empty body', async (sent) => {
  const { post, errors } = await serve(null)
  expect([await post(sent), await post(sent), errors]).toEqual([200, 200, []])
})
