import { Module } from '@nestjs/common'
import { MemoryStore } from 'once-per-key/memory'
import { IdempotencyModule } from 'once-per-key/nest'
import { Bank } from './bank.js'
import { PayoutsController } from './payouts.controller.js'

@Module({
  imports: [IdempotencyModule.forRoot({ store: new MemoryStore(), scope: (request) => request.user?.merchantId })],
  controllers: [PayoutsController],
  providers: [Bank],
})
export class PaymentsModule {}
