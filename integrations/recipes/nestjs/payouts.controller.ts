import { BadRequestException, Controller, Dependencies, Post, Req } from '@nestjs/common'
import type { Request } from 'express'
import { Bank, type Payout } from './bank.js'

@Controller('payouts')
@Dependencies(Bank)
export class PayoutsController {
  readonly #bank: Bank

  constructor(bank: Bank) {
    this.#bank = bank
  }

  create(req: Request): Promise<Payout> {
    const { amount } = req.body
    if (!(amount > 0)) throw new BadRequestException('The amount must be positive.')
    return this.#bank.transfer(amount, req.idempotency?.deriveKey('bank transfer'))
  }
}

// In your project: `@Post() create(@Req() req: Request)`. This one compiles without the older kind of decorators, the only
// one that methods and arguments take in Nest; this is what they do.
const create = Object.getOwnPropertyDescriptor(PayoutsController.prototype, 'create') as PropertyDescriptor
Post()(PayoutsController.prototype, 'create', create)
Req()(PayoutsController.prototype, 'create', 0)
