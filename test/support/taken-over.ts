import type { Answer, CommandReply, Ownership, Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'

/** What another attempt answered. */
export const OTHERS: Answer = {
  status: 201,
  statusMessage: 'Paid By Another',
  headers: [['X-Receipt', 'another']],
  body: Buffer.from('paid by another'),
}

/** A store in which somebody else has taken the record over by the time that the handler ends. */
export function takenOver({ completed }: { readonly completed: boolean }): Store {
  const inFlight = { state: 'in-flight', attempt: 2, uncertain: true, leaseRemainingMs: 1_000 } as const
  return Object.assign(new MemoryStore(), {
    async complete(_key: string, { fingerprint }: Ownership): Promise<CommandReply> {
      if (!completed) return { ok: false, record: { ...inFlight, fingerprint } }
      return { ok: false, record: { state: 'completed', fingerprint, attempt: 2, answer: OTHERS } }
    },
  })
}
