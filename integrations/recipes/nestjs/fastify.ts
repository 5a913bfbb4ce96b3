import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import { idempotency } from 'once-per-key/fastify'
import { MemoryStore } from 'once-per-key/memory'
import { Bank } from './bank.js'
import { PayoutsController } from './payouts.controller.js'

declare module 'fastify' {
  interface FastifyRequest {
    merchantId: string
  }
}

@Module({ controllers: [PayoutsController], providers: [Bank] })
class PaymentsModule {}

/** Call `app.listen(3000, '0.0.0.0')` on it. */
export async function createApp(): Promise<NestFastifyApplication> {
  const app = await NestFactory.create<NestFastifyApplication>(PaymentsModule, new FastifyAdapter())
  const fastify = app.getHttpAdapter().getInstance()

  fastify.decorateRequest('merchantId', '')
  fastify.addHook('onRequest', async (request, reply) => {
    request.merchantId = String(request.headers['x-merchant'] ?? '') // authentication
    if (request.merchantId === '') return reply.code(401).send()
  })
  await app.register(idempotency, { store: new MemoryStore(), scope: (request) => request.merchantId })
  fastify.addHook('onClose', () => fastify.idempotency.idle()) // the store's client is closed after this
  return app
}
