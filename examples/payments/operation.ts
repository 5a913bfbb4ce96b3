import type { LegacyKey } from 'once-per-key'
import type { z } from 'zod'
import type { Books } from './ledger.js'
import type { Merchant } from './merchants.js'
import type { EventContent } from './webhook-event.js'

/** What an operation works with: the merchant's books, inside one transaction, and the time of the request. */
export interface Context {
  readonly books: Books
  readonly now: Date
}

/**
 * One POST path. The service's document shows paths and rules, but no fields: all bodies and answers of this example are
 * our own modest design.
 */
export interface Operation<Schema extends z.ZodType = z.ZodType, Result extends object = object> {
  readonly path: `/api/service/${string}`
  readonly title: string
  readonly status: 200 | 201
  readonly schema: Schema
  /** A deprecated place of the key, where this operation has one. */
  readonly legacyKey?: LegacyKey
  /** Throws a ServiceProblem where a rule of the business forbids it; then nothing changed. */
  run(input: z.output<Schema>, context: Context): Promise<Result>
  /**
   * What subscribers are told of it. Which operations emit which event is not documented; we chose: a merchant is updated
   * when it gets a subaccount, and the setup of a mandate starts with a new customer. The content comes from the result
   * alone: an attempt that finds what an earlier one did tells the same.
   */
  emits?(result: Result, merchant: Merchant): EventContent
  /** A body that works right now; what it refers to is created first. */
  sample(context: Context): Promise<z.output<Schema>>
}
