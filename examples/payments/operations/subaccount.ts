import { z } from 'zod'
import type { Currency } from '../currencies.js'
import { currency, name } from '../fields.js'
import { newId } from '../ledger.js'
import type { Operation } from '../operation.js'

export interface Subaccount {
  readonly id: string
  readonly name: string
  readonly currency: Currency
  readonly createdAt: string
}

const schema = z.strictObject({ name, currency })

export const createSubaccount: Operation<typeof schema, Subaccount> = {
  path: '/api/service/subaccount/create',
  title: 'Create a subaccount',
  status: 201,
  schema,
  async run({ name, currency }, { books, now }) {
    const subaccount: Subaccount = { id: newId('sub'), name, currency, createdAt: now.toISOString() }
    books.put('subaccount', subaccount)
    return subaccount
  },
  emits: ({ createdAt }, { id, name }) => ({
    type: 'merchant_updated',
    date: createdAt,
    payload: { id, displayName: name, updatedAt: createdAt },
  }),
  async sample() {
    return { name: 'Reserve', currency: 'GBP' }
  },
}
