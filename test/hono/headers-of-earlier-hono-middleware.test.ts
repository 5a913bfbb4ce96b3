import { getRequestListener } from '@hono/node-server'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { idempotency, singleTenant } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { beforeAll, describe, expect, test } from 'vitest'

// Looking at Hono's response before the handler made one, whose headers Hono then set over those of the handler's own Response:
// `no-store` left as the `public` of earlier middleware.

const HANDLERS: Readonly<Record<string, (c: Context) => Response>> = {
  'a Response of its own': () =>
    new Response('secret', {
      headers: { 'Content-Type': 'text/plain', 'Cache-Control': 'no-store', 'Set-Cookie': 'own=1' },
    }),
  'one of Hono’s': (c) => c.text('secret', 200, { 'Cache-Control': 'no-store' }),
}
const EARLIER: Readonly<Record<string, MiddlewareHandler>> = {
  'c.header': async (c, next) => {
    c.header('Cache-Control', 'public, max-age=60')
    c.header('Set-Cookie', 'earlier=1')
    await next()
  },
  'c.res.headers': async (c, next) => {
    c.res.headers.set('X-Version', '2')
    await next()
  },
  'c.status': async (c, next) => {
    c.status(202)
    await next()
  },
}
const SEEN = ['Cache-Control', 'X-Version']

/** Its Response shares the headers that it is given. */
const useThatOfNodeServer = () => void getRequestListener(() => new Response())

describe.each([
  { whose: 'the platform', use: () => {} },
  { whose: '@hono/node-server', use: useThatOfNodeServer },
])('with the Response of $whose', ({ use }) => {
  beforeAll(use)

  test.each(
    Object.entries(EARLIER).flatMap(([earlier, middleware]) =>
      Object.entries(HANDLERS).map(([answer, handler]) => ({ earlier, middleware, answer, handler })),
    ),
  )('after $earlier, $answer has the headers that it has in Hono alone', async ({ middleware, handler }) => {
    const bare: MiddlewareHandler = (_c, next) => next()
    const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
    const [expected] = await twice(middleware, bare, handler)
    const [first, replay] = await twice(middleware, once, handler)
    expect([...first.headers]).toEqual([...expected.headers])
    expect([first.status, replay.status]).toEqual([expected.status, expected.status])
    expect(replay.headers.get('Idempotent-Replayed')).toBe('true')
    for (const name of SEEN) expect([name, replay.headers.get(name)]).toEqual([name, expected.headers.get(name)])
  })
})

async function twice(...handlers: readonly [MiddlewareHandler, MiddlewareHandler, (c: Context) => Response]) {
  const app = new Hono()
  app.post('/payouts', ...handlers)
  const post = () => app.request('/payouts', { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
  return [await post(), await post()] as const
}
