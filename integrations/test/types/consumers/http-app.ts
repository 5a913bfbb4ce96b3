import { createServer, type IncomingMessage } from 'node:http'
import { type IdempotencyContext, idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'

interface MerchantRequest extends IncomingMessage {
  merchantId?: string
  idempotency?: IdempotencyContext | undefined
}

const store = new MemoryStore()
const once = idempotency<MerchantRequest>({ store, scope: (req) => req.merchantId })
idempotency({ store, scope: singleTenant })
idempotency<MerchantRequest>({ store, scope: singleTenant })
idempotency({ store, scope: (req: MerchantRequest) => req.merchantId })
idempotency({ store, scope: (req) => req.socket.remoteAddress })
// @ts-expect-error a header may be there more than once
idempotency({ store, scope: (req) => req.headers['x-account'] })
// @ts-expect-error nobody declared it
idempotency({ store, scope: (req) => req.merchantId })
// @ts-expect-error a request is an IncomingMessage
idempotency<{ merchantId: string }>({ store, scope: (req) => req.merchantId })

createServer((req: MerchantRequest, res) => {
  once(req, res, (error) => {
    res.statusCode = error === undefined ? 201 : 500
    res.end(String(req.idempotency?.attempt))
  })
})
