import { z } from 'zod'
import { type Currency, currencies } from './currencies.js'

/** In minor units: 1050 is EUR 10.50. */
export const amount = z.int().positive().max(99_999_999_999)

export const currency = z.enum(Object.keys(currencies) as [Currency, ...Currency[]])

export const name = z.string().trim().min(1).max(140)

export const email = z.email().max(254)

export const country = z.string().regex(/^[A-Z]{2}$/, 'Must be an ISO 3166 code of two capital letters')

export const iban = z.string().regex(/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/, 'Must be an IBAN without spaces')

export const webUrl = z.url({ protocol: /^https?$/, error: 'Must be an http or https URL' }).max(2_000)

/** The id of an entry, such as `ord_…`. */
export function id(prefix: string) {
  return z.string().max(100).startsWith(`${prefix}_`)
}
