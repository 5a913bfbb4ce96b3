/** ISO 4217 codes, with the digits of their minor unit and a made-up, fixed rate: what one euro buys. */
export const currencies = {
  EUR: { digits: 2, perEuro: 1 },
  USD: { digits: 2, perEuro: 1.08 },
  GBP: { digits: 2, perEuro: 0.85 },
  CHF: { digits: 2, perEuro: 0.95 },
  DKK: { digits: 2, perEuro: 7.46 },
  NOK: { digits: 2, perEuro: 11.5 },
  SEK: { digits: 2, perEuro: 11.2 },
  PLN: { digits: 2, perEuro: 4.3 },
  JPY: { digits: 0, perEuro: 163 },
} as const

export type Currency = keyof typeof currencies

/** How much of `to` one unit of `from` buys. */
export function rateOf(from: Currency, to: Currency): number {
  return Number((currencies[to].perEuro / currencies[from].perEuro).toFixed(6))
}

/** Both amounts are in minor units. */
export function convert(amount: number, from: Currency, to: Currency): number {
  return Math.round(amount * rateOf(from, to) * 10 ** (currencies[to].digits - currencies[from].digits))
}
