import { randomBytes } from 'node:crypto'
import { CertainFailure, type IdempotencyContext } from 'once-per-key'
import type { OperationRuns } from './demo-operation.js'
import type { Outcome } from './made-once.js'
import type { BeneficiaryPayout } from './operations/beneficiary-payout.js'
import type { CheckoutSession } from './operations/checkout-session.js'
import type { Customer } from './operations/customer.js'
import type { FxConversion } from './operations/fx.js'
import type { Order } from './operations/order.js'
import type { Payout } from './operations/payout.js'
import type { Refund } from './operations/refund.js'
import type { Subaccount } from './operations/subaccount.js'
import type { SubscriptionList, WebhookSubscription } from './operations/webhook-subscription.js'
import { ServiceProblem } from './problems.js'
import type { SampleLists } from './samples.js'

/** What a merchant's books hold, by kind. One that names a `keptUntil` may be dropped then. */
export interface Entries {
  readonly beneficiaryPayout: BeneficiaryPayout
  readonly checkoutSession: CheckoutSession
  readonly customer: Customer
  readonly fxConversion: FxConversion
  readonly operationRuns: OperationRuns
  readonly order: Order
  readonly outcome: Outcome
  readonly payout: Payout
  readonly refund: Refund
  readonly sampleLists: SampleLists
  readonly subaccount: Subaccount
  readonly subscriptionList: SubscriptionList
  readonly webhookSubscription: WebhookSubscription
}

export type Kind = keyof Entries

/** One merchant's books, as one transaction sees them. Entries are replaced, never changed in place. */
export interface Books {
  get<K extends Kind>(kind: K, id: string): Promise<Entries[K] | undefined>
  put<K extends Kind>(kind: K, entry: Entries[K]): void
  delete(kind: Kind, id: string): void
}

/** The service's own state: the part that would be a database. */
export interface Ledger {
  /**
   * All that `work` writes takes place at its end, or nothing if it throws. Transactions of one merchant do not meet: one
   * that would is done again, so `work` may run more than once.
   *
   * @throws BooksUnavailable
   */
  transaction<T>(merchantId: string, work: (books: Books) => Promise<T>): Promise<T>
  /** Absent: these books know no transaction that a record is a part of. */
  readonly withRecord?: RecordTransactions
}

/** Transactions of books that stand in one database with the records. */
export interface RecordTransactions {
  /**
   * `transaction` and the completion of a run's record, in one: `answer` is called inside of it, and what it sends leaves behind
   * the COMMIT.
   */
  answered<T>(
    context: IdempotencyContext,
    merchantId: string,
    work: (books: Books) => Promise<T>,
    answer: (result: T) => void,
  ): Promise<T>
  /** What becomes of it where its owner dies before the COMMIT: all is written, `untilDeath` has resolved, and all is undone. */
  abandoned(
    merchantId: string,
    work: (books: Books) => Promise<unknown>,
    untilDeath: () => Promise<void>,
  ): Promise<void>
}

/** The books cannot be reached. `mayHaveCommitted`: the writes were on their way, and may have taken place. */
export class BooksUnavailable extends ServiceProblem {
  constructor(
    readonly reason: string,
    readonly mayHaveCommitted: boolean,
  ) {
    super(503, 'books_unavailable', 'The books cannot be reached at the moment', 'Try again after a short delay.', {
      headers: { 'Retry-After': '1', 'X-Should-Retry': 'true' },
    })
  }
}

/** A refusal had no effect, and neither had a failure before the writes were sent: the key is free again, or the step not begun. */
export function certainWhereItIs(error: unknown): never {
  const isCertain = error instanceof BooksUnavailable ? !error.mayHaveCommitted : error instanceof ServiceProblem
  if (!isCertain) throw error
  throw new CertainFailure((error as Error).message, { cause: error })
}

export function memoryLedger(): Ledger {
  const entriesOf = new Map<string, Map<string, Entries[Kind]>>()
  const lastOf = new Map<string, Promise<unknown>>()

  async function transact<T>(merchantId: string, work: (books: Books) => Promise<T>): Promise<T> {
    const entries = entriesOf.get(merchantId) ?? new Map<string, Entries[Kind]>()
    const written = new Map<string, Entries[Kind] | undefined>()
    const result = await work({
      async get<K extends Kind>(kind: K, id: string) {
        const place = `${kind} ${id}`
        return (written.has(place) ? written.get(place) : entries.get(place)) as Entries[K] | undefined
      },
      put: (kind, entry) => written.set(`${kind} ${entry.id}`, entry),
      delete: (kind, id) => written.set(`${kind} ${id}`, undefined),
    })
    for (const [place, entry] of written) {
      if (entry === undefined) entries.delete(place)
      else entries.set(place, entry)
    }
    entriesOf.set(merchantId, entries)
    return result
  }

  return {
    transaction(merchantId, work) {
      const result = (lastOf.get(merchantId) ?? Promise.resolve()).then(() => transact(merchantId, work))
      lastOf.set(
        merchantId,
        result.catch(() => {}),
      )
      return result
    },
  }
}

export function newId(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString('hex')}`
}
