import { once as emitted } from 'node:events'
import type { AddressInfo } from 'node:net'
import express, { type NextFunction, type Request, type Response } from 'express'
import {
  type IdempotencyContext,
  type IdempotencyEvent,
  type IdempotencyOptions,
  idempotency,
  singleTenant,
} from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { onTestFinished } from 'vitest'

export interface Served {
  post(): Promise<{ status: number; body: unknown; replayed: string | null; extra: string | null }>
  readonly events: readonly IdempotencyEvent[]
  /** What the handler threw, behind its middleware. */
  readonly errors: readonly unknown[]
}

/** An application on a free port, until the test ends, whose one client sends one key. */
export async function serve(
  store: Store,
  handler: (res: Response, context: IdempotencyContext) => Promise<unknown>,
  options: Partial<IdempotencyOptions> = {},
): Promise<Served> {
  const events: IdempotencyEvent[] = []
  const errors: unknown[] = []
  const once = idempotency({ store, scope: singleTenant, onEvent: (event) => events.push(event), ...options })
  const app = express()
  app.post('/payouts', express.json(), once, (req, res) => handler(res, req.idempotency as IdempotencyContext))
  app.use((error: unknown, _req: Request, res: Response, _next: NextFunction) => {
    errors.push(error)
    res.status(500).json({ failed: true })
  })
  const server = app.listen(0, '127.0.0.1')
  await emitted(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once.idle()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/payouts`
  return {
    events,
    errors,
    async post() {
      const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': 'k' }
      const response = await fetch(url, { method: 'POST', headers, body: '{"amount":5}' })
      const { status } = response
      const [replayed, extra] = ['idempotent-replayed', 'x-extra'].map((name) => response.headers.get(name))
      return { status, body: await response.json(), replayed: replayed ?? null, extra: extra ?? null }
    },
  }
}
