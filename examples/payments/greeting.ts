import { randomUUID } from 'node:crypto'

export interface Situation {
  readonly origin: string
  /** Others than this machine can come. */
  readonly isOpen: boolean
  /** Webhooks may go to this machine. */
  readonly mayReachLoopback: boolean
  /** Records and books outlive the process. */
  readonly isLasting: boolean
}

/** The page, three lines to paste into a shell, and who can reach what. */
export function greeting({ origin, isOpen, mayReachLoopback, isLasting }: Situation): string {
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

${isLasting ? LASTING : IN_MEMORY}
${isOpen ? OPEN : CLOSED}
${mayReachLoopback ? TO_LOOPBACK : TO_PUBLIC}
`
}

const IN_MEMORY =
  'Its records and books end with it; SQLITE_FILE=payments.db keeps them in a file, DATABASE_URL or REDIS_URL on a server.'
const LASTING = 'Its records and books outlive it.'
const CLOSED = 'It listens on this machine alone; HOST=0.0.0.0 lets others come, whose API keys are no secret.'
const OPEN = 'Others can reach it, and its API keys are no secret. Without HOST it listens on this machine alone.'
const TO_PUBLIC =
  'Its webhooks go to public addresses alone; DEMO_WEBHOOK_LOOPBACK=true lets them reach this machine, for a demo.'
const TO_LOOPBACK = 'Its webhooks go to public addresses, and to this machine (DEMO_WEBHOOK_LOOPBACK=true).'
