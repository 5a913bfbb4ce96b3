import { type Asked, isSuccess } from './asking.js'
import { isTold, type KeyHistory } from './history.js'
import type { Verdicts } from './verdicts.js'

/** Who had an effect of this name: over all keys. */
export type EffectOf = (entry: string) => { readonly scope: string; readonly key: string } | undefined

/** Checks what clients saw: S2, S3, S8, S9. */
export function checkAnswers(
  history: KeyHistory,
  effectOf: EffectOf,
  forgetful: readonly string[],
  verdicts: Verdicts,
): void {
  const successes = history.asked.filter(isSuccess).sort((a, b) => a.endedAt - b.endedAt)
  const isPending = isTold(history, 'completion_pending')
  for (const success of successes) {
    checkOrigin(history, success, effectOf, verdicts)
    if (!isPending) checkStored(history, success, verdicts)
  }
  checkMismatches(history, verdicts)
  const [first] = successes
  if (first === undefined) return
  // A success that was sent unconfirmed may be followed by another; where the books remove duplicates it is the same.
  const mayDiffer = isPending && (forgetful.includes(history.scope) || history.steps.length > 0)
  for (const later of mayDiffer ? [] : successes.slice(1)) {
    verdicts.expectIfKept('S2', history, later.reply?.essence === first.reply?.essence, () => {
      return `Two successes differ:\n${first.reply?.essence}\n${later.reply?.essence}`
    })
  }
  for (const asked of isPending ? [] : history.asked) checkReplayed(history, first, asked, verdicts)
}

/** Behind a success that was seen there is nothing but the same success, or no store to ask. */
function checkReplayed(history: KeyHistory, first: Asked, asked: Asked, verdicts: Verdicts): void {
  const { reply, payment } = asked
  const isRepeat = payment.reference === first.payment.reference && payment.amount === first.payment.amount
  if (!isRepeat || asked.sentAt < first.endedAt || reply === undefined) return
  const isReplay = reply.status === 201 && reply.replayed
  verdicts.expectIfKept('S3', history, isReplay || reply.code === 'store_unavailable', () => {
    const what = reply.status === 201 ? 'a success that was no replay' : (reply.code ?? reply.status)
    return `A success had been seen, and a repeat got ${what}`
  })
}

/** The store had confirmed a completion before the first client saw it. */
function checkStored(history: KeyHistory, success: Asked, verdicts: Verdicts): void {
  const stored = history.commands.some(({ command, process, reply, repliedAt, sentAt }) => {
    if (command !== 'complete') return false
    // The reply to its owner may have been lost; what was replayed was stored.
    if (success.reply?.replayed) return sentAt < success.endedAt
    return process === success.place.process && reply?.outcome === 'ok' && repliedAt < success.endedAt
  })
  verdicts.expectIfKept('S3', history, stored, () => 'A client saw a success that was not stored before')
}

function checkOrigin(history: KeyHistory, success: Asked, effectOf: EffectOf, verdicts: Verdicts): void {
  const { entry = null, reference = null } = success.reply ?? {}
  const origin = entry === null ? undefined : effectOf(entry)
  verdicts.expect('S8', history, origin !== undefined, () => `No handler made the answer ${entry}`)
  if (origin === undefined) return
  const isOwn = origin.scope === history.scope && origin.key === history.key
  verdicts.expect('S9', history, isOwn, () => `The answer ${entry} belongs to ${origin.scope} ${origin.key}`)
  verdicts.expect('S9', history, reference === success.payment.reference, () => {
    return `"${success.payment.reference}" was answered with "${reference}"`
  })
}

/** A mismatch is with another body of the same scope. */
function checkMismatches({ asked, ...history }: KeyHistory, verdicts: Verdicts): void {
  for (const each of asked) {
    if (each.reply?.code !== 'mismatched') continue
    const { reference, amount } = each.payment
    const hasOther = asked.some(
      ({ payment, sentAt }) => sentAt < each.endedAt && (payment.reference !== reference || payment.amount !== amount),
    )
    verdicts.expect('S9', { asked, ...history }, hasOther, () => `"${reference}" mismatched what nobody had sent`)
  }
}
