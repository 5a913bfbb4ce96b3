import { Readable } from 'node:stream'
import type { Context } from 'koa'
import { expect, test } from 'vitest'
import { serveKoa } from '../bindings/served.js'
import { failingStore } from '../support/failing-store.js'

// What a handler that nobody waits for sets in `ctx`, or a time limit in front, while the answer is stored was sent in place of it: a
// client was told something else than what its record held.

const LATE: readonly { readonly name: string; readonly follow: (ctx: Context) => unknown }[] = [
  { name: 'another body', follow: (ctx) => Object.assign(ctx, { body: { error: 'late' } }) },
  { name: 'another kind of body', follow: (ctx) => Object.assign(ctx, { body: Readable.from(['late']) }) },
  { name: 'no body', follow: (ctx) => Object.assign(ctx, { body: null }) },
  { name: 'a status', follow: (ctx) => Object.assign(ctx, { status: 503 }) },
  { name: 'a message', follow: (ctx) => Object.assign(ctx, { message: 'Late' }) },
  { name: 'a header', follow: (ctx) => ctx.set('X-Late', '1') },
  { name: 'a header less', follow: (ctx) => ctx.remove('X-Paid') },
]

const BODIES = [
  { body: 'JSON', bodyOf: () => ({ id: 'po_1' }) },
  { body: 'a stream', bodyOf: () => Readable.from(['{"id":"po_1"}'], { objectMode: false }) },
]

test.each(BODIES.flatMap((each) => LATE.map((late) => ({ ...each, ...late }))))(
  'while $body is stored, $name changes nothing',
  async ({ bodyOf, follow }) => {
    const store = failingStore()
    const { port } = await serveKoa({
      options: { store },
      handler(ctx) {
        store.next('complete', async (take) => {
          await Promise.resolve()
          follow(ctx)
          return take()
        })
        ctx.status = 201
        ctx.body = bodyOf()
        ctx.type = 'application/json'
        ctx.set('X-Paid', 'yes')
      },
    })
    const post = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
      const { status, statusText, headers } = response
      const [type, paid, late] = ['content-type', 'x-paid', 'x-late'].map((name) => headers.get(name))
      return { status, statusText, type, paid, late, body: await response.text() }
    }
    const first = await post()
    const type = 'application/json; charset=utf-8'
    expect(first).toEqual({ status: 201, statusText: 'Created', type, paid: 'yes', late: null, body: '{"id":"po_1"}' })
    expect(await post()).toEqual(first)
  },
)
