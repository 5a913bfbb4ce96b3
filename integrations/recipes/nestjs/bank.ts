import { Injectable } from '@nestjs/common'

export interface Payout {
  readonly id: string
  readonly amount: number
}

/** Stands for what moves the money; the key that it is given keeps it from moving it twice. */
@Injectable()
export class Bank {
  readonly transfers: Payout[] = []

  async transfer(amount: number, idempotencyKey: string): Promise<Payout> {
    const payout = { id: `po_${idempotencyKey}`, amount }
    this.transfers.push(payout)
    return payout
  }
}
