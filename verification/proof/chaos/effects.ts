import { type KeyHistory, ownerOf } from './history.js'
import type { Verdicts } from './verdicts.js'

/** What the books hold in the end: how many payouts were made for a body of a key. */
export type Books = (scope: string, reference: string) => number

export interface Terms {
  readonly leaseMs: number
  readonly unknownOutcome: 'rerun' | 'refuse'
  readonly forgetful: readonly string[]
}

/** Checks what handlers did: S5's count of effects, of S9 that only one body has effects, S10 and S11. */
export function checkEffects(history: KeyHistory, terms: Terms, books: Books, verdicts: Verdicts): void {
  checkCount(history, terms, books, verdicts)
  const bodies = new Set(history.effects.map(({ reference }) => reference))
  if (history.effects.length > 0) {
    verdicts.expectIfKept('S9', history, bodies.size === 1, () => `Two bodies had effects: ${[...bodies].join(', ')}`)
  }
  for (const run of history.runs) {
    const owner = ownerOf(history, run)
    const isConfirmed = owner !== undefined && owner.repliedAt < owner.sentAt + terms.leaseMs
    verdicts.expect('S10', history, isConfirmed, () => {
      return `A handler of service ${run.process} ran as attempt ${run.attempt}, a claim that no store had confirmed`
    })
  }
  for (const effect of history.effects) {
    const token = ownerOf(history, effect)?.token
    const released = history.commands.find(
      ({ command, token: by, sentAt }) => command === 'release' && by === token && sentAt < effect.at,
    )
    verdicts.expect('S11', history, released === undefined, () => {
      return `Attempt ${effect.attempt} was released, and had its effect afterwards: its handler was still running`
    })
  }
}

function checkCount(history: KeyHistory, { unknownOutcome, forgetful }: Terms, books: Books, verdicts: Verdicts): void {
  const { scope, claims, effects } = history
  const references = [...new Set(history.asked.map(({ payment }) => payment.reference))]
  const inTheBooks = references.reduce((sum, reference) => sum + books(scope, reference), 0)
  // Who died between its effect and its note has left it in the books alone.
  const count = Math.max(effects.length, inTheBooks)
  const takeovers = claims.filter(({ previousOutcome }) => previousOutcome === 'unknown').length
  const most = unknownOutcome === 'rerun' ? 1 + takeovers : 1
  if (count > 0) {
    verdicts.expectIfKept('S5', history, count <= most, () => `${count} effects, and ${takeovers} takeovers`)
  }
  // Where the books remove duplicates, a payment is in them once, whoever took over.
  if (!forgetful.includes(scope) && inTheBooks > 0) {
    verdicts.expectIfKept('S5', history, inTheBooks === 1, () => `The books hold it ${inTheBooks} times`)
  }
}
