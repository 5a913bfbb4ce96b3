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
import type { PostgresStore } from 'once-per-key/postgres'
import type { PoolClient } from 'pg'
import { afterEach, beforeEach, onTestFinished } from 'vitest'
import { startFaultProxy } from '../../../support/fault-proxy.js'
import { openPool, openStore, storeOn } from '../open-store.js'

/** Not the library's types, so that a store of one's own may be used. */
export type Handler = (req: Request, res: Response, context: IdempotencyContext) => Promise<unknown>

export interface Told {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly replayed: boolean
  readonly retryAfter: string | null
}

const FAST = { leaseMs: 8_000, maxRunMs: 10_000, storeTimeoutMs: 2_000 }

/** An application on a database of its own, whose default is this isolation level; its effects are rows. */
export async function onDatabase(isolation = 'read committed') {
  const opened = await openStore()
  const { query, server: database, pool: plain } = opened
  const name = new URL(opened.url).pathname.slice(1)
  await query(`ALTER DATABASE ${name} SET default_transaction_isolation = '${isolation}'`)
  await query('CREATE TABLE effects (id text)')
  const url = opened.url
  const [pool, application] = [openPool(url), openPool(url)]
  const store = storeOn({ pool, transactions: application })
  const events: IdempotencyEvent[] = []
  const errors: { readonly code?: string; readonly message: string }[] = []
  const servers: { readonly server: Server; idle(): Promise<void> }[] = []

  /** Called inside the block whose tests use it. */
  function clears(): void {
    beforeEach(async () => {
      await query('TRUNCATE once_per_key.records, effects')
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
      ...{ store, scope: singleTenant, effects: 'in-transaction', ...FAST },
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

  /** The application's connections, by way of a proxy that loses what it is told to lose. */
  async function throughProxy(max = 10) {
    const proxy = await startFaultProxy(database.port)
    const behind = openPool(url.replace(`:${database.port}`, `:${proxy.port}`), { max })
    onTestFinished(async () => {
      await behind.end()
      await proxy.close()
    })
    return { proxy, behind, inProxy: storeOn({ pool, transactions: behind }) }
  }

  return {
    ...{ url, pool, application, store, plain, database, query, events, errors, serve, throughProxy, clears },
    insert: (tx: Pick<PoolClient, 'query'>, id = 'e1') => tx.query('INSERT INTO effects VALUES ($1)', [id]),
    effects: async () => (await query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id),
    record: () => store.inspect('single-tenant:k'),
    types: () => events.map(({ type }) => type),
  }
}

export type OnDatabase = Awaited<ReturnType<typeof onDatabase>>
export type Store = PostgresStore<OnDatabase['application']>
