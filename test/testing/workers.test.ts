import { idempotency } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import { expectOnce } from 'once-per-key/testing'
import { expect, test } from 'vitest'

// A Worker's `fetch` takes an environment and a context: its type was refused, and it was called without them.

interface ExecutionContext {
  waitUntil(pending: Promise<unknown>): void
  passThroughOnException(): void
}

const once = idempotency({ store: new MemoryStore(), scope: () => 'acme' })
const REQUEST = { path: '/payouts', body: { amount: 100 } }
const pay = async () => Response.json({ id: 'po_1' }, { status: 201 })

test('expectOnce takes a Worker', async () => {
  const worker = {
    fetch(request: Request, _env: unknown, context: ExecutionContext): Promise<Response> {
      context.passThroughOnException()
      return once.handle(request, pay, { waitUntil: (pending) => context.waitUntil(pending) })
    },
  }
  expect((await expectOnce(worker, REQUEST)).checked).toContain('race')
})

test('what a Worker leaves to its platform may fail, as it may there', async () => {
  const worker = {
    fetch(request: Request, _env: object, context: ExecutionContext): Promise<Response> {
      context.waitUntil(Promise.reject(new Error('the log is away')))
      return once.handle(request, pay)
    },
  }
  expect((await expectOnce(worker, REQUEST)).checked).toContain('race')
})

test('a Worker with bindings is passed as a function', async () => {
  const worker = {
    fetch: (request: Request, { id }: { id: string }, context: ExecutionContext): Promise<Response> =>
      once.handle(request, async () => Response.json({ id }), { waitUntil: (pending) => context.waitUntil(pending) }),
  }
  const context = { waitUntil() {}, passThroughOnException() {} }
  const app = (request: Request) => worker.fetch(request, { id: 'po_1' }, context)
  expect((await expectOnce(app, REQUEST)).checked).toContain('race')
})
