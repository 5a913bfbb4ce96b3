import Koa from 'koa'
import bodyParser from 'koa-bodyparser'
import { idempotency } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'

export const app = new Koa<{ merchantId: string }>()
const once = idempotency({ store: new MemoryStore(), scope: (ctx) => ctx.state.merchantId })

app.use(async (ctx, next) => {
  ctx.state.merchantId = ctx.get('X-Merchant') // authentication
  await next()
})
app.use(bodyParser())
app.use(once)
app.use((ctx) => {
  const { amount } = ctx.request.body as { amount: number }
  ctx.status = 201
  ctx.body = { id: ctx.idempotency?.deriveKey('payout'), amount }
})
