import { type FastifyInstance, fastify } from 'fastify'
import { type Store, singleTenant } from 'once-per-key'
import { contextOf, idempotency } from 'once-per-key/fastify'
import { fulfil, type Order, type Others } from './order.js'

export async function ordersServer(store: Store, others: Others): Promise<FastifyInstance> {
  const app = fastify()
  await app.register(idempotency, { store, scope: singleTenant, required: true })
  app.post<{ Body: Order }>('/orders', async (request, reply) => {
    return reply.code(201).send(await fulfil(contextOf(request), request.body, others))
  })
  return app
}
