import { randomUUID } from 'node:crypto'

/** The page, and three lines to paste into a shell. */
export function greeting(origin: string): string {
  const key = randomUUID()
  const payout = (amount: number) =>
    `curl -i ${origin}/api/service/payout/create -H 'Authorization: Bearer demo_acme' -H 'Content-Type: application/json' ` +
    `-H 'Idempotency-Key: ${key}' -d '{"amount":${amount},"currency":"EUR"}'`
  return `The playground is on ${origin}. Open it in a browser, or paste into a shell:

# A payout is made.
${payout(5_000)}

# The same line again: the same answer, and no second payout (Idempotent-Replayed: true).
${payout(5_000)}

# Another amount with the same key: 409, and no payout.
${payout(9_900)}
`
}
