import { Hono } from 'hono'
import { idempotency } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'

const app = new Hono<{ Variables: { merchantId: string } }>()
const once = idempotency<{ Variables: { merchantId: string } }>({
  store: new MemoryStore(),
  scope: (c) => c.get('merchantId'),
})

app.use(async (c, next) => {
  c.set('merchantId', c.req.header('X-Merchant') ?? '') // authentication
  await next()
})
app.post('/payouts', once, async (c) => {
  const { amount } = await c.req.json()
  return c.json({ id: c.get('idempotency')?.deriveKey('payout'), amount }, 201)
})

export default app
