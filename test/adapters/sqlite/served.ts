import { once as event } from 'node:events'
import type { AddressInfo } from 'node:net'
import express, { type NextFunction, type Request, type Response } from 'express'
import {
  type IdempotencyContext,
  type IdempotencyEvent,
  type IdempotencyOptions,
  idempotency,
  singleTenant,
} from 'once-per-key'
import type { SqliteStoreOptions } from 'once-per-key/sqlite'
import { onTestFinished } from 'vitest'
import type { DriverName } from './drivers.js'
import { openStore } from './open-store.js'

export type Handler = (res: Response, context: IdempotencyContext, req: Request) => Promise<unknown>

/** A service with a table of effects beside the records, until the test ends. */
export async function served(driver: DriverName, settings: Partial<SqliteStoreOptions> = {}) {
  const opened = openStore(driver, settings)
  const { database, store, query } = opened
  database.exec('PRAGMA journal_mode = WAL; CREATE TABLE effects (id TEXT PRIMARY KEY)')
  await store.migrate()
  const events: IdempotencyEvent[] = []
  const errors: unknown[] = []

  async function serve(handler: Handler, options: Partial<IdempotencyOptions> = {}): Promise<void> {
    const once = idempotency({ store, scope: singleTenant, onEvent: (event) => events.push(event), ...options })
    const app = express().post('/payouts', express.json(), once, (req, res, next) => {
      handler(res, req.idempotency as IdempotencyContext, req).catch(next)
    })
    app.use((error: { status?: number }, _req: Request, res: Response, next: NextFunction) => {
      errors.push(error)
      if (res.headersSent) return next(error)
      res.status(error.status ?? 500).json({ failed: true })
    })
    const server = app.listen(0, '127.0.0.1')
    await event(server, 'listening')
    post = async (key = 'k') => {
      const { port } = server.address() as AddressInfo
      const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key }
      const response = await fetch(`http://127.0.0.1:${port}/payouts`, { method: 'POST', headers, body: '{}' })
      const body: unknown = await response.json()
      const { status, headers: answered } = response
      return { status, body, replayed: answered.get('idempotent-replayed'), extra: answered.get('x-extra') }
    }
    onTestFinished(async () => {
      server.closeAllConnections()
      server.close()
      await once.idle()
    })
  }

  let post = async (_key?: string): Promise<Reply> => {
    throw new Error('Nothing is served yet.')
  }
  return {
    ...opened,
    events,
    errors,
    serve,
    post: (key?: string) => post(key),
    effects: () => query('SELECT id FROM effects ORDER BY id').map(({ id }) => id),
    record: (key = 'k') => store.inspect(`single-tenant:${key}`),
    types: () => events.map(({ type }) => type),
  }
}

interface Reply {
  readonly status: number
  readonly body: unknown
  readonly replayed: string | null
  readonly extra: string | null
}

/** One effect, as a handler writes it. */
export function insert(tx: { prepare(sql: string): { run(...values: string[]): unknown } }, id = 'e1'): void {
  tx.prepare('INSERT INTO effects VALUES (?)').run(id)
}
