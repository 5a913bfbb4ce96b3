import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type NextFunction, type Request, type Response } from 'express'
import {
  type IdempotencyContext,
  type IdempotencyEvent,
  type IdempotencyOptions,
  idempotency,
  singleTenant,
} from 'once-per-key'

export type Handler = (req: Request, res: Response, context: IdempotencyContext) => Promise<unknown>

export interface Told {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly replayed: boolean
  readonly retryAfter: string | null
}

const FAST = { leaseMs: 8_000, maxRunMs: 10_000, storeTimeoutMs: 2_000 }

/** Express applications with one protected route each; `usual`: their options. */
export function payoutServers(usual: Pick<IdempotencyOptions, 'store' | 'effects'>) {
  const events: IdempotencyEvent[] = []
  const errors: { readonly code?: string; readonly message: string }[] = []
  const servers: { readonly server: Server; idle(): Promise<void> }[] = []

  /** Resolves with what sends a request to it. */
  async function serve(handler: Handler, options: Partial<IdempotencyOptions> = {}) {
    const app = express()
    const protect = idempotency({
      ...{ scope: singleTenant, ...FAST, ...usual },
      onEvent: (event) => events.push(event),
      ...options,
    })
    app.post('/payouts', express.json(), protect, (req, res, next) => {
      handler(req, res, req.idempotency as IdempotencyContext).catch(next)
    })
    app.use(
      (error: (typeof errors)[number] & { status?: number }, _req: Request, res: Response, next: NextFunction) => {
        errors.push(error)
        if (res.headersSent) return next(error)
        res.status(error.status ?? 500).json({ failed: true })
      },
    )
    const server = await new Promise<Server>((resolve) => {
      const listening = app.listen(0, '127.0.0.1', () => resolve(listening))
    })
    servers.push({ server, idle: () => protect.idle() })
    const post = async ({ key = 'k', amount = 5 } = {}): Promise<Told> => {
      const { port } = server.address() as AddressInfo
      const response = await fetch(`http://127.0.0.1:${port}/payouts`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
        body: JSON.stringify({ amount }),
      })
      const text = await response.text()
      return {
        status: response.status,
        body: text.startsWith('{') ? JSON.parse(text) : { text },
        replayed: response.headers.get('idempotent-replayed') === 'true',
        retryAfter: response.headers.get('retry-after'),
      }
    }
    return Object.assign(post, { idle: () => protect.idle() })
  }

  return {
    serve,
    events,
    errors,
    types: () => events.map(({ type }) => type),
    /** What was told so far is of an earlier test. */
    forget(): void {
      events.length = 0
      errors.length = 0
    },
    async close(): Promise<void> {
      for (const { server, idle } of servers.splice(0)) {
        server.closeAllConnections()
        server.close()
        await idle()
      }
    },
  }
}
