import { bodyField } from 'once-per-key'
import { z } from 'zod'
import { type Currency, convert, rateOf } from '../currencies.js'
import { amount, currency } from '../fields.js'
import { newId } from '../ledger.js'
import type { Operation } from '../operation.js'
import { ruleBroken } from '../problems.js'

export interface FxConversion {
  readonly id: string
  readonly sellAmount: number
  readonly sellCurrency: Currency
  readonly buyAmount: number
  readonly buyCurrency: Currency
  readonly rate: number
  readonly createdAt: string
}

const schema = z
  .strictObject({
    sellAmount: amount,
    sellCurrency: currency,
    buyCurrency: currency,
    /** Deprecated: the key goes into the header. The middleware has read it. */
    idempotencyKey: z.string().nullish(),
  })
  .refine(({ sellCurrency, buyCurrency }) => sellCurrency !== buyCurrency, {
    path: ['buyCurrency'],
    error: 'Must differ from sellCurrency',
  })

export const executeFx: Operation<typeof schema, FxConversion> = {
  path: '/api/service/fx/execute',
  title: 'Execute an FX conversion',
  status: 201,
  schema,
  // The official SDK adds a header of its own to every call: where it is there too, the field is what the client means.
  legacyKey: bodyField('idempotencyKey', { deprecatedSince: new Date('2026-01-01'), whenBoth: 'field' }),
  async run({ sellAmount, sellCurrency, buyCurrency }, { books, now }) {
    const buyAmount = convert(sellAmount, sellCurrency, buyCurrency)
    if (buyAmount < 1) throw ruleBroken('amount_too_small', `It buys less than the smallest amount of ${buyCurrency}.`)
    const conversion: FxConversion = {
      id: newId('fx'),
      sellAmount,
      sellCurrency,
      buyAmount,
      buyCurrency,
      rate: rateOf(sellCurrency, buyCurrency),
      createdAt: now.toISOString(),
    }
    books.put('fxConversion', conversion)
    return conversion
  },
  async sample() {
    return { sellAmount: 100_000, sellCurrency: 'EUR', buyCurrency: 'USD' }
  },
}
