import { z } from 'zod'
import type { Currency } from '../currencies.js'
import { amount, currency, id } from '../fields.js'
import { newId } from '../ledger.js'
import type { Operation } from '../operation.js'
import { notFound, ruleBroken } from '../problems.js'
import { liveCustomer } from './customer.js'

/** Nobody pays in this example: an open order counts as paid, and an expired one can no longer be refunded. */
export interface Order {
  readonly id: string
  readonly amount: number
  readonly refundedAmount: number
  readonly currency: Currency
  readonly description: string | null
  readonly customerId: string | null
  readonly status: 'open' | 'expired'
  readonly createdAt: string
  readonly expiredAt: string | null
}

const createSchema = z.strictObject({
  amount,
  currency,
  description: z.string().max(500).optional(),
  customerId: id('cus').optional(),
})

export const createOrder: Operation<typeof createSchema, Order> = {
  path: '/api/service/order/create',
  title: 'Create an order',
  status: 201,
  schema: createSchema,
  async run({ amount, currency, description = null, customerId = null }, { books, now }) {
    if (customerId !== null) await liveCustomer(books, customerId)
    const order: Order = {
      id: newId('ord'),
      amount,
      refundedAmount: 0,
      currency,
      description,
      customerId,
      status: 'open',
      createdAt: now.toISOString(),
      expiredAt: null,
    }
    books.put('order', order)
    return order
  },
  async sample() {
    return { amount: 7_500, currency: 'EUR', description: 'Two tickets' }
  },
}

const expireSchema = z.strictObject({ orderId: id('ord') })

export const expireOrder: Operation<typeof expireSchema, Order> = {
  path: '/api/service/order/expire',
  title: 'Expire an order',
  status: 200,
  schema: expireSchema,
  async run({ orderId }, { books, now }) {
    const order = await books.get('order', orderId)
    if (order === undefined) throw notFound('order', orderId)
    if (order.status === 'expired') throw ruleBroken('order_expired', `Order ${orderId} has expired already.`)
    const expired: Order = { ...order, status: 'expired', expiredAt: now.toISOString() }
    books.put('order', expired)
    return expired
  },
  async sample(context) {
    const order = await createOrder.run(await createOrder.sample(context), context)
    return { orderId: order.id }
  },
}
