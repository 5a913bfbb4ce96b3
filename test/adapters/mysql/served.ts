import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type NextFunction, type Request, type Response } from 'express'
import type { Pool, PoolConnection, PoolOptions } from 'mysql2/promise'
import {
  type IdempotencyContext,
  type IdempotencyEvent,
  type IdempotencyOptions,
  idempotency,
  singleTenant,
} from 'once-per-key'
import { afterAll, afterEach, beforeEach, onTestFinished } from 'vitest'
import { startFaultProxy } from '../../support/fault-proxy.js'
import { openPool, openStore, storeOn } from './open-store.js'

export type Handler = (req: Request, res: Response, context: IdempotencyContext) => Promise<unknown>

export interface Told {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly replayed: boolean
  readonly retryAfter: string | null
}

const FAST = { leaseMs: 8_000, maxRunMs: 10_000, storeTimeoutMs: 2_000 }

/** An application on a database of its own, whose sessions begin with a statement; its effects are rows. */
export async function onDatabase(session = 'DO 0', settings?: Readonly<Record<string, string>>) {
  const opened = await openStore(settings)
  const { query, server: database, url, pool } = opened
  await query('CREATE TABLE effects (id VARCHAR(64) PRIMARY KEY) ENGINE = InnoDB')
  const application = applicationPool(url)
  afterAll(() => application.end().catch(() => {}))
  const store = storeOn({ pool, transactions: application })
  const events: IdempotencyEvent[] = []
  const errors: { readonly code?: string; readonly message: string }[] = []
  const servers: { readonly server: Server; idle(): Promise<void> }[] = []

  function applicationPool(uri: string, options: PoolOptions = {}): Pool {
    const made = openPool(uri, options)
    made.on('connection', (connection) => void connection.query(session))
    return made
  }

  /** Called inside the block whose tests use it. */
  function clears(): void {
    beforeEach(async () => {
      await query('DELETE FROM once_per_key_records')
      await query('DELETE FROM effects')
      events.length = 0
      errors.length = 0
    })
    afterEach(async () => {
      for (const { server, idle } of servers.splice(0)) {
        server.closeAllConnections()
        server.close()
        await idle()
      }
    })
  }

  /** Resolves with what sends a request to it. */
  async function serve(handler: Handler, options: Partial<IdempotencyOptions> = {}) {
    const app = express()
    const protect = idempotency({
      ...{ store, scope: singleTenant, ...FAST },
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
    return async ({ key = 'k', amount = 5 } = {}): Promise<Told> => {
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
  }

  /** The application's connections, by way of a proxy that loses what it is told to lose. */
  async function throughProxy() {
    const proxy = await startFaultProxy(database.port)
    const behind = applicationPool(url.replace(`:${database.port}`, `:${proxy.port}`))
    onTestFinished(async () => {
      await behind.end().catch(() => {})
      await proxy.close()
    })
    return { proxy, behind, inProxy: storeOn({ pool, transactions: behind }) }
  }

  return {
    ...{ url, pool, application, store, database, query, events, errors, serve, throughProxy, clears },
    insert: (tx: Pick<PoolConnection, 'query'>, id = 'e1') => tx.query('INSERT INTO effects VALUES (?)', [id]),
    effects: async () => (await query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id),
    record: () => store.inspect('single-tenant:k'),
    types: () => events.map(({ type }) => type),
    /** Ends the record's lease, as if time had passed. */
    lapse: () => query('UPDATE once_per_key_records SET lease_until = 1'),
  }
}
