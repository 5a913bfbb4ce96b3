import type { IdempotencyContext } from 'once-per-key'
import { type Books, BooksUnavailable, type Ledger } from '../../../examples/payments/ledger.js'
import type { Outcome } from '../../../examples/payments/made-once.js'
import type { Note, RunFacts } from './journal.js'

/** The request that is being handled. */
export interface Handled {
  readonly idempotency?: IdempotencyContext | undefined
  readonly body?: { readonly reference?: string }
}

/**
 * A ledger that notes each run that comes to its books, and each effect, also one that the books find done already: as a
 * bank would count that removes no duplicate. For a merchant among the `forgetful` the books do not remove them either.
 */
export function journaledLedger(
  ledger: Ledger,
  note: (note: Note) => void,
  handled: () => Handled | undefined,
  forgetful: ReadonlySet<string>,
): Ledger {
  return {
    async transaction(merchantId, work) {
      const run = runOf(handled())
      if (run === null) return ledger.transaction(merchantId, work)
      const { previousOutcome, ...facts } = run
      note({ what: 'run', previousOutcome, ...facts })
      let outcome: Outcome | undefined
      const watched = (books: Books): Books => ({
        async get(kind, id) {
          if (kind === 'outcome' && forgetful.has(merchantId)) return undefined
          const entry = await books.get(kind, id)
          if (kind === 'outcome') outcome = entry as Outcome | undefined
          return entry
        },
        put(kind, entry) {
          if (kind === 'outcome') outcome = entry as Outcome
          books.put(kind, entry)
        },
        delete: books.delete,
      })
      const done = await ledger
        .transaction(merchantId, (books) => work(watched(books)))
        .catch((error: unknown) => {
          const perhaps = error instanceof BooksUnavailable && error.mayHaveCommitted
          if (perhaps) note({ what: 'effect', entry: null, ...facts })
          throw error
        })
      note({ what: 'effect', entry: (outcome?.result as { id: string } | undefined)?.id ?? null, ...facts })
      return done
    },
  }
}

function runOf(request: Handled | undefined): (RunFacts & { previousOutcome: string }) | null {
  if (request?.idempotency === undefined) return null
  const { scope, key, attempt, previousOutcome } = request.idempotency
  return { scope, key, attempt, previousOutcome, reference: request.body?.reference ?? '' }
}
