import { z } from 'zod'
import type { Currency } from '../currencies.js'
import { amount, currency, id, webUrl } from '../fields.js'
import { newId } from '../ledger.js'
import type { Operation } from '../operation.js'
import { notFound, ruleBroken } from '../problems.js'

const OPEN_MS = 30 * 60_000

export interface CheckoutSession {
  readonly id: string
  readonly amount: number
  readonly currency: Currency
  readonly successUrl: string
  readonly cancelUrl: string | null
  readonly status: 'open' | 'expired'
  readonly expiresAt: string
  readonly createdAt: string
}

const createSchema = z.strictObject({ amount, currency, successUrl: webUrl, cancelUrl: webUrl.optional() })

export const createCheckoutSession: Operation<typeof createSchema, CheckoutSession> = {
  path: '/api/service/checkout/session/create',
  title: 'Create a checkout session',
  status: 201,
  schema: createSchema,
  async run({ cancelUrl = null, ...given }, { books, now }) {
    const session: CheckoutSession = {
      id: newId('cs'),
      ...given,
      cancelUrl,
      status: 'open',
      expiresAt: new Date(now.getTime() + OPEN_MS).toISOString(),
      createdAt: now.toISOString(),
    }
    books.put('checkoutSession', session)
    return session
  },
  async sample() {
    return { amount: 4_990, currency: 'EUR', successUrl: 'https://shop.example/thanks' }
  },
}

const expireSchema = z.strictObject({ sessionId: id('cs') })

export const expireCheckoutSession: Operation<typeof expireSchema, CheckoutSession> = {
  path: '/api/service/checkout/session/expire',
  title: 'Expire a checkout session',
  status: 200,
  schema: expireSchema,
  async run({ sessionId }, { books, now }) {
    const session = await books.get('checkoutSession', sessionId)
    if (session === undefined) throw notFound('checkout session', sessionId)
    if (now >= new Date(session.expiresAt)) {
      throw ruleBroken('session_expired', `Checkout session ${sessionId} has expired already.`)
    }
    const expired: CheckoutSession = { ...session, status: 'expired', expiresAt: now.toISOString() }
    books.put('checkoutSession', expired)
    return expired
  },
  async sample(context) {
    const session = await createCheckoutSession.run(await createCheckoutSession.sample(context), context)
    return { sessionId: session.id }
  },
}
