import type { IncomingMessage } from 'node:http'
import connect from 'connect'
import { type IdempotencyContext, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'

interface MerchantRequest extends IncomingMessage {
  merchantId?: string
  idempotency?: IdempotencyContext | undefined
}

const once = idempotency<MerchantRequest>({ store: new MemoryStore(), scope: (req) => req.merchantId })

const app = connect()
app.use(once)
app.use('/payouts', once)
app.use('/payouts', (req: MerchantRequest, res) => {
  res.end(String(req.idempotency?.attempt))
})
