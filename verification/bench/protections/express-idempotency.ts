import type { Request, RequestHandler } from 'express'
import { payoutHandler, type Work } from '../payout.js'
import { loadPeer } from '../peer-packages.js'
import type { Open, Protection } from '../protection.js'

interface ExpressIdempotency {
  idempotency(options?: { dataAdapter?: unknown }): RequestHandler
  getSharedIdempotencyService(): { isHit(req: Request): boolean }
}

interface RedisAdapter {
  connect(): Promise<void>
  disconnect(): Promise<void>
}

/** As its README sets it up: its default store, an array in memory. */
export const expressIdempotencyMemory: Open = async (work) => protection(work)

/** As the README of its Redis adapter sets it up. */
export const expressIdempotencyRedis: Open = async (work, { redisPort }) => {
  const { default: Adapter } = loadPeer<{ default: new (options: unknown) => RedisAdapter }>(
    'express-idempotency-redis-adapter',
  )
  const adapter = new Adapter({ connectionConfig: { url: `redis://127.0.0.1:${redisPort}` } })
  await adapter.connect()
  return protection(work, adapter)
}

function protection(work: Work, adapter?: RedisAdapter): Protection {
  const peer = loadPeer<ExpressIdempotency>('express-idempotency')
  const handler = payoutHandler(work)
  return {
    handlers: [
      peer.idempotency(adapter && { dataAdapter: adapter }),
      // It calls the handler for a replay too, and leaves it to the handler to notice.
      (req, res, next) => (peer.getSharedIdempotencyService().isHit(req) ? undefined : handler(req, res, next)),
    ],
    close: async () => adapter?.disconnect(),
  }
}
