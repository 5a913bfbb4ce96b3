import { afterAll, describe, expect, test, vi } from 'vitest'
import { listen } from '../support/bindings.js'

afterAll(() => vi.unstubAllGlobals())

const payout = (key: string, amount = 100) =>
  new Request('http://test/payouts', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key, 'X-Merchant': 'acme' },
    body: JSON.stringify({ amount }),
  })

type Send = (request: Request) => Response | Promise<Response>

/** To a server, until the tests end. */
function sendTo(address: string, close: () => Promise<unknown>): Send {
  closing.push(close)
  return async ({ method, headers, url, body }) => {
    const bytes = body === null ? null : await new Response(body).arrayBuffer()
    return fetch(address + new URL(url).pathname, { method, headers, body: bytes })
  }
}

const closing: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closing) await close()
})

/** How each platform calls what its recipe gives it. */
const RECIPES: readonly { readonly name: string; readonly load: () => Promise<Send> }[] = [
  { name: 'Fetch', load: async () => (await import('../../examples/recipes/frameworks/fetch.js')).handler },
  {
    name: 'Hono',
    load: async () => {
      const { default: app } = await import('../../examples/recipes/frameworks/hono.js')
      return (request) => app.fetch(request)
    },
  },
  {
    name: 'Fastify',
    load: async () => {
      const { app } = await import('../../examples/recipes/frameworks/fastify.js')
      return sendTo(await app.listen({ port: 0, host: '127.0.0.1' }), () => app.close())
    },
  },
  {
    name: 'Koa',
    load: async () => {
      const { app } = await import('../../examples/recipes/frameworks/koa.js')
      const { port, close } = await listen(app.callback())
      return sendTo(`http://127.0.0.1:${port}`, close)
    },
  },
  {
    name: 'Next.js',
    load: async () => {
      const { POST } = await import('../../examples/recipes/frameworks/next.js')
      return (request) => POST(request, { params: Promise.resolve({ account: 'a' }) })
    },
  },
  {
    name: 'SvelteKit',
    load: async () => {
      const { POST } = await import('../../examples/recipes/frameworks/sveltekit.js')
      return (request) => POST({ request, locals: { merchantId: 'acme' } })
    },
  },
  {
    name: 'Remix',
    load: async () => {
      const { action } = await import('../../examples/recipes/frameworks/remix.js')
      return (request) => action({ request })
    },
  },
  {
    name: 'Bun',
    load: async () => {
      let send: Send | undefined
      const serve = ({ routes }: { routes: { '/payouts': { POST: Send } } }) => {
        send = (request) => routes['/payouts'].POST(request)
        return {}
      }
      vi.stubGlobal('Bun', { serve })
      await import('../../examples/recipes/frameworks/bun.js')
      return send as Send
    },
  },
  {
    name: 'Deno',
    load: async () => {
      let send: Send | undefined
      vi.stubGlobal('Deno', {
        serve(handler: Send) {
          send = handler
        },
      })
      await import('../../examples/recipes/frameworks/deno.js')
      return send as Send
    },
  },
  {
    name: 'Workers',
    load: async () => {
      const { default: worker } = await import('../../examples/recipes/frameworks/worker.js')
      return (request) => worker.fetch(request, {}, { waitUntil() {} })
    },
  },
]

describe.each(RECIPES)('the recipe for $name', ({ name, load }) => {
  test('pays once, and replays the answer', async () => {
    const send = await load()
    const [first, replay] = [await send(payout(name)), await send(payout(name))]
    expect([first.status, replay.status, replay.headers.get('Idempotent-Replayed')]).toEqual([201, 201, 'true'])
    expect(await replay.text()).toBe(await first.text())
    expect(await (await send(payout(name, 200))).json()).toMatchObject({ code: 'mismatched' })
  })
})

test('the recipe for Remix refuses by a Response that it throws: a corrected request may follow', async () => {
  const { action } = await import('../../examples/recipes/frameworks/remix.js')
  const refused: unknown = await action({ request: payout('corrected', 2_000) }).catch((thrown: unknown) => thrown)
  expect((refused as Response).status).toBe(422)
  expect((await action({ request: payout('corrected', 1_000) })).status).toBe(201)
})
