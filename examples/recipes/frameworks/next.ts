// app/accounts/[account]/payouts/route.ts
import { once } from './once.js'

export const POST = once(async (request, idempotency, { params }: { params: Promise<{ account: string }> }) => {
  const { account } = await params
  const { amount } = (await request.json()) as { amount: number }
  return Response.json({ id: idempotency?.deriveKey('payout'), account, amount }, { status: 201 })
})
