import { z } from 'zod'
import type { Currency } from '../currencies.js'
import { amount, id } from '../fields.js'
import { newId } from '../ledger.js'
import type { Operation } from '../operation.js'
import { notFound, ruleBroken } from '../problems.js'
import { createOrder } from './order.js'

export interface Refund {
  readonly id: string
  readonly orderId: string
  readonly amount: number
  readonly currency: Currency
  readonly reason: string | null
  readonly status: 'pending'
  readonly createdAt: string
}

const schema = z.strictObject({ orderId: id('ord'), amount, reason: z.string().max(500).optional() })

export const createRefund: Operation<typeof schema, Refund> = {
  path: '/api/service/refund/create',
  title: 'Create a refund',
  status: 201,
  schema,
  async run({ orderId, amount, reason = null }, { books, now }) {
    const order = await books.get('order', orderId)
    if (order === undefined) throw notFound('order', orderId)
    if (order.status === 'expired') throw ruleBroken('order_expired', `Order ${orderId} has expired.`)
    const left = order.amount - order.refundedAmount
    if (amount > left) {
      throw ruleBroken('refund_exceeds_order', `Of order ${orderId}, ${left} ${order.currency} (minor units) are left.`)
    }
    const refund: Refund = {
      id: newId('ref'),
      orderId,
      amount,
      currency: order.currency,
      reason,
      status: 'pending',
      createdAt: now.toISOString(),
    }
    books.put('order', { ...order, refundedAmount: order.refundedAmount + amount })
    books.put('refund', refund)
    return refund
  },
  async sample(context) {
    const order = await createOrder.run(await createOrder.sample(context), context)
    return { orderId: order.id, amount: 2_500, reason: 'One ticket returned' }
  },
}
