// So many requests on plain node:http, without a wire, with the library or without: `bare`, `at-once`, `by-promises`, `by-send`, `closures`.
// With a third argument, what each of them makes is counted: promises, and timers.
import { createHook } from 'node:async_hooks'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { idempotency } from 'once-per-key'
import type { Hearing, OwnersCommand, SentOperation, Store } from 'once-per-key/core'

const [, , variant = 'bare', count = '0', counts] = process.argv
const BEGUN = { acquired: true, attempt: 1, previousOutcome: 'none' } as const
const OK = { ok: true } as const

/** Tells its replies later, by a method, as a client with callbacks would. */
class SendingStore implements Store {
  send(command: OwnersCommand, _operation: SentOperation, hearing: Hearing<never>): void {
    setImmediate(hear, hearing, command === 'begin' ? BEGUN : OK)
  }

  begin(): typeof BEGUN {
    return BEGUN
  }

  renew(): typeof OK {
    return OK
  }

  complete(): typeof OK {
    return OK
  }

  release(): typeof OK {
    return OK
  }
}

function hear(hearing: Hearing<never>, reply: unknown): void {
  hearing.heard(reply as never)
}

/** Keeps nothing, so that what V8 promotes is the request's own. */
function forgetful(): Store {
  if (variant === 'by-send') return new SendingStore()
  return variant === 'by-promises'
    ? { begin: async () => BEGUN, renew: async () => OK, complete: async () => OK, release: async () => OK }
    : { begin: () => BEGUN, renew: () => OK, complete: () => OK, release: () => OK }
}

async function answer(res: ServerResponse): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  res.statusCode = 201
  res.setHeader('Location', '/payouts/1')
  res.setHeader('Content-Type', 'application/json')
  res.end(JSON.stringify({ id: 'payout_1', reference: 'r'.repeat(60) }))
}

/** What must never be: two functions of a request's own on what its handler gets. */
function addClosures(req: IncomingMessage): void {
  const { idempotency: context } = req as { idempotency?: Record<string, unknown> }
  if (context === undefined) throw new Error('The request is not protected.')
  context.one = () => req
  context.two = () => context
}

const once = idempotency({ store: forgetful(), scope: () => 'acme' })

function serve(req: IncomingMessage, res: ServerResponse, fail: (error: unknown) => void): void {
  if (variant === 'bare') return void answer(res).catch(fail)
  once(req, res, (error) => {
    if (error !== undefined) return fail(error)
    if (variant === 'closures') addClosures(req)
    answer(res).catch(fail)
  })
}

const socket = new Socket()
socket.write = (_bytes: unknown, encoding?: unknown, callback?: unknown) => {
  const done = typeof encoding === 'function' ? encoding : callback
  if (typeof done === 'function') done()
  return true
}

function handle(key: string): Promise<void> {
  const headers = [
    'Host',
    'localhost',
    'Content-Type',
    'application/json',
    'Content-Length',
    '90',
    'Idempotency-Key',
    key,
  ]
  const req = Object.assign(new IncomingMessage(socket), {
    method: 'POST',
    url: '/payouts',
    httpVersionMajor: 1,
    httpVersionMinor: 1,
    rawHeaders: headers,
    complete: true,
    body: { amountMinor: 1, reference: 'r'.repeat(60) },
  })
  for (let i = 0; i < headers.length; i += 2) req.headers[(headers[i] as string).toLowerCase()] = headers[i + 1]
  const res = new ServerResponse(req)
  res.assignSocket(socket)
  return new Promise((resolve, reject) => {
    res.once('finish', () => {
      res.detachSocket(socket)
      if (res.statusCode === 201) resolve()
      else reject(new Error(`Answered ${res.statusCode}.`))
    })
    serve(req, res, reject)
  })
}

async function handleMany(amount: number, name: string): Promise<void> {
  for (let i = 0; i < amount; i++) await handle(`${name}-${i}`)
}

await handleMany(2_000, 'warm')
if (counts === undefined) {
  console.log('begin')
  await handleMany(Number(count), 'counted')
  console.log('end')
} else {
  const made: Record<string, number> = { PROMISE: 0, Timeout: 0 }
  const hook = createHook({
    init(_id, type) {
      made[type] = (made[type] ?? 0) + 1
    },
  }).enable()
  await handleMany(Number(count), 'counted')
  hook.disable()
  console.log(JSON.stringify({ promises: made.PROMISE, timers: made.Timeout }))
}
process.exit(0)
