import type { IncomingMessage, ServerResponse } from 'node:http'
import { idempotency } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import { expectOnce } from 'once-per-key/testing'
import { expect, test } from 'vitest'

// A route handler of Next.js takes a Request and a context. It was called as Node's `(req, res)`: its rejection was unhandled, and nothing
// ended the trial.

const REQUEST = { path: '/payouts', body: { amount: 100 } }
const WORDS = /takes a Request, pass \(request\) => POST\(request, context\)/

test.each([
  [
    'rejects',
    async (request: Request, { params }: { params: Promise<object> }) => Response.json([request.url, await params]),
  ],
  [
    'throws',
    (request: Request, _context: object) => {
      throw new TypeError(`${request.headers.get('X-Merchant')}`)
    },
  ],
  ['returns a Response', async (_request: Request, _context: object) => Response.json({}, { status: 201 })],
])('a function of two parameters that takes a Request, and %s, is told how to be passed', async (_which, POST) => {
  await expect(expectOnce(POST, REQUEST)).rejects.toThrow(WORDS)
})

test('what such a function threw is the cause', async () => {
  const lost = new Error('the session is lost')
  const POST = async (_request: Request, _context: object) => Promise.reject(lost)
  await expect(expectOnce(POST, REQUEST)).rejects.toMatchObject({ cause: lost })
})

test('passed as a function of one parameter, it is tried', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme' })
  const POST = async (request: Request, { merchant }: { merchant: string }) =>
    once.handle(request, async () => Response.json({ merchant }, { status: 201 }))
  const { checked } = await expectOnce((request: Request) => POST(request, { merchant: 'acme' }), REQUEST)
  expect(checked).toContain('race')
})

test('a (req, res) function that rejects where it is told to fail is an attempt without an answer', async () => {
  let fails = false
  let paid = 0
  const answers = new Map<string, string>()
  async function pay(req: IncomingMessage, res: ServerResponse) {
    const key = String(req.headers['idempotency-key'])
    const isFailing = fails
    fails = false
    if (isFailing) throw new Error('the bank is closed')
    const kept = answers.get(key)
    answers.set(key, kept ?? `${++paid}`)
    if (kept !== undefined) res.setHeader('Idempotent-Replayed', 'true')
    res.end(answers.get(key))
  }
  const options = {
    effects: () => paid,
    fail: () => {
      fails = true
    },
  }
  expect((await expectOnce(pay, { path: '/payouts' }, options)).checked).toContain('failure and retry')
})
