import type { Answer, BeginReply, CommandReply, machine, PreviousOutcome, Store } from 'once-per-key/core'
import type { IdempotencyEvent, ProblemCode } from 'once-per-key/http'

/** What can be seen from outside, in the order in which it happened. `by`: the number of the request. */
export type Observed =
  | { readonly type: 'arrived'; readonly by: number; readonly scope: string; readonly content: Content }
  | Executed
  /** A reply, or an error (`null`), reaches the process that asked. */
  | { readonly type: 'heard'; readonly by: number; readonly command: Command['name']; readonly reply: Reply | null }
  | { readonly type: 'ran'; readonly by: number; readonly attempt: number; readonly previousOutcome: PreviousOutcome }
  | { readonly type: 'ended'; readonly by: number; readonly end: End }
  | StepSeen
  | { readonly type: 'told'; readonly by: number; readonly told: Told }
  | { readonly type: 'said'; readonly by: number; readonly event: IdempotencyEvent['type'] }
  | { readonly type: 'crashed' | 'stalled' | 'resumed'; readonly by: number }
  | { readonly type: 'record_lost'; readonly scope: string }

/** What a handler sees of a step: its work is called, it ends, and the handler gets its result, or an error. */
export type StepSeen = { readonly by: number; readonly label: Label } & (
  | { readonly type: 'step_called'; readonly previousOutcome: 'none' | 'unknown' }
  | { readonly type: 'step_ended'; readonly end: StepEnd }
  /** `result`: whose work made it; `isDecoded`: as the store keeps it. */
  | { readonly type: 'step_got'; readonly result: number; readonly isDecoded: boolean }
  | { readonly type: 'step_failed'; readonly code: string }
)

/** The steps of an operation, in their order. */
export const LABELS = ['charge', 'ship'] as const
export type Label = (typeof LABELS)[number]

/** How the work of a step ends: with a result; with a throw that leaves open what it did; or declined, certainly without effect. */
export type StepEnd = 'done' | 'thrown' | 'declined'

/** A command takes effect in the store. */
export interface Executed {
  readonly type: 'executed'
  readonly by: number
  readonly command: Command
  readonly before: machine.StoredRecord | null
  readonly after: machine.StoredRecord | null
  readonly reply: Reply
}

export type Entry = Observed & { readonly at: number }

/** What a request asks for: two requests with the same content are the same. */
export type Content = 'a payout' | 'another payout'

export type Command =
  | { readonly name: 'begin'; readonly claim: Parameters<Store['begin']>[1] }
  | { readonly name: 'renew'; readonly own: Parameters<Store['renew']>[1] }
  | { readonly name: 'complete'; readonly own: Parameters<Store['complete']>[1] }
  | { readonly name: 'release'; readonly own: Parameters<Store['release']>[1] }
  | { readonly name: 'step'; readonly own: Parameters<NonNullable<Store['step']>>[1] }

export type Reply = BeginReply | CommandReply

/**
 * How a handler ends: it succeeds; it refuses, without effect or after `mayHaveEffect()`; it breaks down (a 5xx); or it
 * ends without an answer. Only of the first two is it certain whether there was an effect.
 */
export type End = 'success' | 'refusal' | 'late_refusal' | 'breakdown' | 'no_answer'

export function isCertain(end: End): boolean {
  return end === 'success' || end === 'refusal'
}

export type Told =
  | { readonly kind: 'success'; readonly text: string }
  | { readonly kind: 'failure' }
  | { readonly kind: 'problem'; readonly code: ProblemCode }

/** All bytes of an answer but the mark of a replay. */
export function textOf(answer: Answer): string {
  const headers = answer.headers.filter(([name]) => name !== 'Idempotent-Replayed')
  const body = answer.body === null ? null : Buffer.from(answer.body).toString('latin1')
  return JSON.stringify([answer.status, answer.statusMessage, headers, body])
}

/** A line for somebody who was not there. */
export function lineOf(entry: Entry): string {
  return `${String(entry.at).padStart(5)} ms  ${wordsOf(entry)}`
}

function wordsOf(entry: Observed): string {
  switch (entry.type) {
    case 'arrived':
      return `request ${entry.by} arrives: ${entry.content} of ${entry.scope}`
    case 'executed':
      return `the store executes ${commandInWords(entry.command)} of request ${entry.by}: ${replyInWords(entry.reply)}; the record is now ${recordInWords(entry.after)}`
    case 'heard':
      return `request ${entry.by} hears of its ${entry.command}: ${entry.reply === null ? 'an error' : replyInWords(entry.reply)}`
    case 'ran':
      return `the handler of request ${entry.by} starts: attempt ${entry.attempt}, previousOutcome ${entry.previousOutcome}`
    case 'ended':
      return `the handler of request ${entry.by} ends: ${entry.end}`
    case 'step_called':
      return `request ${entry.by} calls the work of ${entry.label}, told '${entry.previousOutcome}'`
    case 'step_ended':
      return `the work of ${entry.label} of request ${entry.by} ends: ${entry.end}`
    case 'step_got':
      return `request ${entry.by} gets of ${entry.label} the result of request ${entry.result}`
    case 'step_failed':
      return `request ${entry.by} gets of ${entry.label} an error: ${entry.code}`
    case 'told':
      return `the client of request ${entry.by} is told: ${toldInWords(entry.told)}`
    case 'said':
      return `event of request ${entry.by}: ${entry.event}`
    case 'record_lost':
      return `the store loses the record of ${entry.scope}`
    default:
      return `the process of request ${entry.by} is ${entry.type}`
  }
}

function commandInWords(command: Command): string {
  if (command.name !== 'step') return command.name
  const { label, state, order } = command.own
  return `step ${label} ${state} (${order})`
}

function replyInWords(reply: Reply): string {
  if ('ok' in reply) return reply.ok ? 'ok' : 'stale'
  if (reply.acquired) return `acquired, attempt ${reply.attempt}, previousOutcome ${reply.previousOutcome}`
  return `not acquired, ${reply.record.state}`
}

function recordInWords(record: machine.StoredRecord | null): string {
  if (record === null) return 'none'
  const uncertain = record.state !== 'completed' && record.uncertain ? ', uncertain' : ''
  const lease = record.state === 'in-flight' ? `, leased until ${record.leaseUntil} ms` : ''
  const steps = record.state === 'completed' ? [] : (record.steps ?? [])
  const recorded = steps.map(({ label, state, order }) => `, ${label} ${state} (${order})`).join('')
  return `${record.state}, attempt ${record.attempt}${uncertain}${lease}${recorded}`
}

function toldInWords(told: Told): string {
  switch (told.kind) {
    case 'success':
      return `success ${told.text}`
    case 'failure':
      return 'its failure'
    case 'problem':
      return told.code
  }
}
