import { idempotency, singleTenant } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'

const once = idempotency({
  store: new MemoryStore(), // for one process
  scope: singleTenant, // whose key it is; with several customers: (request) => request.headers.get('X-Customer')
  required: true, // a request without a key is refused
})

export const POST = once(async (request, idempotency) => {
  const { amount } = await request.json()
  const id = idempotency.deriveKey('payout') // the same UUID on every attempt
  console.log(`paying ${amount} (${id})`) // replace it with the call to your bank
  return Response.json({ id, amount }, { status: 201 })
})
