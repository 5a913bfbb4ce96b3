import { z } from 'zod'
import type { Currency } from '../currencies.js'
import { amount, currency, iban, name } from '../fields.js'
import { newId } from '../ledger.js'
import type { Operation } from '../operation.js'

export interface BeneficiaryPayout {
  readonly id: string
  readonly beneficiary: { readonly name: string; readonly iban: string }
  readonly amount: number
  readonly currency: Currency
  readonly reference: string | null
  readonly status: 'pending'
  readonly createdAt: string
}

const schema = z.strictObject({
  beneficiary: z.strictObject({ name, iban }),
  amount,
  currency,
  reference: z.string().max(140).optional(),
})

export const createBeneficiaryPayout: Operation<typeof schema, BeneficiaryPayout> = {
  path: '/api/service/beneficiary-payout/create',
  title: 'Create a beneficiary payout',
  status: 201,
  schema,
  async run({ beneficiary, amount, currency, reference = null }, { books, now }) {
    const payout: BeneficiaryPayout = {
      id: newId('bpo'),
      beneficiary,
      amount,
      currency,
      reference,
      status: 'pending',
      createdAt: now.toISOString(),
    }
    books.put('beneficiaryPayout', payout)
    return payout
  },
  async sample() {
    const beneficiary = { name: 'Ada Lovelace', iban: 'DE89370400440532013000' }
    return { beneficiary, amount: 12_500, currency: 'EUR', reference: 'Invoice 1815' }
  },
}
