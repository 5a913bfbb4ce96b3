import { z } from 'zod'
import type { Currency } from '../currencies.js'
import { amount, currency } from '../fields.js'
import { newId } from '../ledger.js'
import type { Operation } from '../operation.js'

/** To the merchant's own bank account. */
export interface Payout {
  readonly id: string
  readonly amount: number
  readonly currency: Currency
  readonly reference: string | null
  readonly status: 'pending'
  readonly createdAt: string
}

const schema = z.strictObject({ amount, currency, reference: z.string().max(140).optional() })

export const createPayout: Operation<typeof schema, Payout> = {
  path: '/api/service/payout/create',
  title: 'Create a payout',
  status: 201,
  schema,
  async run({ amount, currency, reference = null }, { books, now }) {
    const payout: Payout = {
      id: newId('po'),
      amount,
      currency,
      reference,
      status: 'pending',
      createdAt: now.toISOString(),
    }
    books.put('payout', payout)
    return payout
  },
  async sample() {
    return { amount: 50_000, currency: 'EUR', reference: 'Week 45' }
  },
}
