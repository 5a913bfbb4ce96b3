import { fastify } from 'fastify'
import { idempotency } from 'once-per-key/fastify'
import { MemoryStore } from 'once-per-key/memory'

declare module 'fastify' {
  interface FastifyRequest {
    merchantId: string
  }
}

export const app = fastify()

app.decorateRequest('merchantId', '')
app.addHook('onRequest', async (request) => {
  request.merchantId = String(request.headers['x-merchant'] ?? '') // authentication
})
await app.register(idempotency, { store: new MemoryStore(), scope: (request) => request.merchantId })

app.post<{ Body: { amount: number } }>('/payouts', async (request, reply) => {
  const id = request.idempotency?.deriveKey('payout')
  return reply.code(201).send({ id, amount: request.body.amount })
})
