import type { Choices } from './choices.js'

export interface Merchant {
  readonly name: string
  readonly apiKey: string
}

/** The example's demo merchants. */
export const merchants: readonly Merchant[] = [
  { name: 'Acme', apiKey: 'demo_acme' },
  { name: 'Globex', apiKey: 'demo_globex' },
]

/** What is asked for: an operation of the service, and its body. */
export interface Instruction {
  readonly path: string
  readonly body: object
  /** In cents. */
  readonly amount: number
}

const CURRENCY = 'EUR'

/** Those of the service's operations that ask for money. */
const bodies: Readonly<Record<string, (amount: number) => object>> = {
  '/api/service/payout/create': (amount) => ({ amount, currency: CURRENCY, reference: 'Week 45' }),
  '/api/service/beneficiary-payout/create': (amount) => ({
    beneficiary: { name: 'Ada Lovelace', iban: 'DE89370400440532013000' },
    amount,
    currency: CURRENCY,
  }),
  '/api/service/checkout/session/create': (amount) => ({
    amount,
    currency: CURRENCY,
    successUrl: 'https://shop.example/thanks',
  }),
  '/api/service/order/create': (amount) => ({ amount, currency: CURRENCY, description: 'Two tickets' }),
  '/api/service/fx/execute': (amount) => ({ sellAmount: amount, sellCurrency: CURRENCY, buyCurrency: 'USD' }),
}

/** One of some amount; after an earlier one: the same, but of another amount. */
export function instructionOf(choices: Choices, earlier?: Instruction): Instruction {
  const path = earlier?.path ?? choices.oneOf(Object.keys(bodies))
  const amount = (earlier?.amount ?? 0) + choices.between(100, 50_000)
  return { path, amount, body: bodies[path]?.(amount) ?? {} }
}
