import type { IdempotencyContext } from 'once-per-key/fetch'
import { once } from './once.js'

export async function createPayout(request: Request, idempotency?: IdempotencyContext): Promise<Response> {
  const { amount } = (await request.json()) as { amount: number }
  const id = idempotency?.deriveKey('payout') ?? crypto.randomUUID()
  return Response.json({ id, amount }, { status: 201 })
}

export const handler = once(createPayout)
