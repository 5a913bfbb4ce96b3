import type { Operator } from 'once-per-key/http'

export interface Books {
  payoutFor(scope: string, key: string): Promise<{ readonly id: string } | null>
}

/** Settles a key whose outcome is unknown, by what the books say. */
export async function settle(once: Operator, books: Books, scope: string, key: string): Promise<string> {
  const record = await once.inspect({ scope, key })
  if (record === null || record.attempt === null) return 'nothing to settle'

  const payout = await books.payoutFor(scope, key) // Did it have its effect?
  const outcome = payout ? { completed: { status: 201, body: payout } } : 'failed'

  const settled = await once.resolve({ scope, key, attempt: record.attempt }, outcome)
  return settled.ok ? 'settled' : `left as it is: ${settled.record?.state ?? 'no record'}`
}
