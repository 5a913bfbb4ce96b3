import type { RequestListener } from 'node:http'
import type { RequestHandler } from 'express'
import { onTestFinished } from 'vitest'
import { listen } from '../support/bindings.js'

export interface Sent {
  readonly path?: string
  readonly key?: string | null
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** A recipe's application on a free port, for one test, and a client of the merchant Acme. */
export async function served(app: RequestListener) {
  const { port, close } = await listen(app)
  onTestFinished(close)
  const origin = `http://127.0.0.1:${port}`

  async function post({ path = '/payouts', key = 'order-1', body = { amount: 100 }, headers }: Sent = {}) {
    const isForm = body instanceof FormData
    const response = await fetch(`${origin}${path}`, {
      method: 'POST',
      headers: {
        Authorization: 'Bearer demo_acme',
        ...(!isForm && { 'Content-Type': 'application/json' }),
        ...(key !== null && { 'Idempotency-Key': key }),
        ...headers,
      },
      body: isForm ? body : typeof body === 'string' ? body : JSON.stringify(body),
    })
    const text = await response.text()
    const header = (name: string) => response.headers.get(name)
    return { status: response.status, header, text, replayed: header('Idempotent-Replayed') === 'true' }
  }

  return { origin, post }
}

/** What a handler of the tests does: it counts its runs, and answers with the number of the run. */
export function counted(work: (req: Express.Request) => unknown = () => {}) {
  let runs = 0
  return {
    runs: () => runs,
    handler: (async (req, res) => {
      runs++
      const run = runs
      await work(req)
      res.status(201).json({ run })
    }) satisfies RequestHandler,
  }
}
