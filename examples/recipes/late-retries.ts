import express, { type Express, type Request, type RequestHandler } from 'express'
import { idempotency, type Store, singleTenant } from 'once-per-key'

/** When the client first sent the operation, as `once-per-key/client` says it; an invalid date is refused. */
function firstSent(req: Request): Date | undefined {
  const sent = req.get('Repeatability-First-Sent')
  return sent === undefined ? undefined : new Date(sent)
}

/** A route on which a retry after the retention is refused, and not run anew. */
export function payouts(store: Store, createPayout: RequestHandler): Express {
  const once = idempotency({ store, scope: singleTenant, firstSent })
  return express().use(express.json()).post('/payouts', once, createPayout)
}
