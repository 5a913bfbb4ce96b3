import { BadRequestException, Body, Controller, Inject, Post, UseGuards } from '@nestjs/common'
import { type IdempotencyContext, Idempotent, Operation } from 'once-per-key/nest'
import { Bank, type Payout } from './bank.js'
import { MerchantGuard } from './merchant.guard.js'

@Controller('payouts')
@UseGuards(MerchantGuard)
export class PayoutsController {
  constructor(@Inject(Bank) private readonly bank: Bank) {}

  @Post()
  @Idempotent({ required: true })
  create(@Body() { amount }: { amount: number }, @Operation() operation: IdempotencyContext): Promise<Payout> {
    if (!(amount > 0)) throw new BadRequestException('The amount must be positive.')
    return this.bank.transfer(amount, operation.deriveKey('bank transfer'))
  }
}
