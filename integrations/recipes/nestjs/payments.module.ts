import { type MiddlewareConsumer, Module, type NestModule, type OnApplicationShutdown } from '@nestjs/common'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { authenticate } from '../merchant.js'
import { Bank } from './bank.js'
import { PayoutsController } from './payouts.controller.js'

@Module({ controllers: [PayoutsController], providers: [Bank] })
export class PaymentsModule implements NestModule, OnApplicationShutdown {
  private readonly once = idempotency({ store: new MemoryStore(), scope: (req) => req.merchantId })

  configure(consumer: MiddlewareConsumer) {
    consumer.apply(authenticate, this.once).forRoutes(PayoutsController)
  }

  async onApplicationShutdown() {
    await this.once.idle() // the server is closed by now; the store's client is closed after this
  }
}
