// app/routes/payouts.ts, of Remix and React Router
import { once } from './once.js'

export const action = ({ request }: { readonly request: Request }): Promise<Response> =>
  once.handle(request, async (same, idempotency) => {
    const { amount } = (await same.json()) as { amount: number }
    // A Response that is thrown counts as the answer, and is thrown on.
    if (amount > 1_000) throw new Response('Too much', { status: 422 })
    return Response.json({ id: idempotency?.deriveKey('payout'), amount }, { status: 201 })
  })
