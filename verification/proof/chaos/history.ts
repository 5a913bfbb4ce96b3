import type { Asked, Payment } from './asking.js'
import type { CommandFacts, CommandName, Entry, Note, Reply } from './journal.js'

/** All that is known of one (scope, key), each list in the order of time. */
export interface KeyHistory {
  readonly scope: string
  readonly key: string
  readonly recordKey: string
  readonly commands: Command[]
  /** The commands that acquired it, the first of each token. */
  readonly claims: Claim[]
  readonly runs: At<Extract<Note, { what: 'run' }>>[]
  readonly effects: At<Extract<Note, { what: 'effect' }>>[]
  readonly told: At<Extract<Note, { what: 'told' }>>[]
  readonly steps: At<StepNote>[]
  readonly asked: Asked[]
}

export type StepNote = Extract<Note, { what: 'step called' | 'step over' | 'step got' }>

export type At<N> = N & { readonly at: number; readonly process: string }

/** A command to the store, from when it was sent to when its reply came: in between it took place, or not. */
export interface Command {
  readonly process: string
  readonly command: CommandName
  readonly token: string
  readonly uncertain: boolean
  readonly step: CommandFacts['step']
  readonly sentAt: number
  /** Infinity: no reply was ever seen. */
  repliedAt: number
  reply: Reply | null
}

export interface Claim extends Command {
  readonly attempt: number
  readonly previousOutcome: string
}

export function historiesOf(entries: readonly Entry[], asked: readonly Asked[], prefix: string): KeyHistory[] {
  const histories = new Map<string, KeyHistory>()
  const open = new Map<string, { history: KeyHistory; command: Command }>()

  function of(scope: string, key: string): KeyHistory {
    const name = `${scope}:${key}`
    let history = histories.get(name)
    if (history === undefined) {
      const recordKey = `${prefix}${name}`
      history = {
        scope,
        key,
        recordKey,
        commands: [],
        claims: [],
        runs: [],
        effects: [],
        told: [],
        steps: [],
        asked: [],
      }
      histories.set(name, history)
    }
    return history
  }

  for (const entry of entries) {
    const { at, process } = entry
    switch (entry.what) {
      case 'sent': {
        // The storage key is readable, and the keys of this proof need no encoding.
        const [scope = '', key = ''] = entry.about.recordKey.split(':')
        const { token, uncertain = false, step } = entry.about
        const { command: name } = entry
        const command: Command = {
          process,
          command: name,
          token,
          uncertain,
          step,
          sentAt: at,
          repliedAt: Number.POSITIVE_INFINITY,
          reply: null,
        }
        const history = of(scope, key)
        history.commands.push(command)
        open.set(`${process} ${entry.id}`, { history, command })
        break
      }
      case 'replied': {
        const { history, command } = open.get(`${process} ${entry.id}`) ?? {}
        if (history === undefined || command === undefined) break
        command.repliedAt = at
        command.reply = entry.reply
        const { outcome, attempt, previousOutcome } = entry.reply
        const isFirst = history.claims.every(({ token }) => token !== command.token)
        if (outcome !== 'acquired' || attempt === undefined || previousOutcome === undefined || !isFirst) break
        history.claims.push({ ...command, attempt, previousOutcome })
        break
      }
      case 'unanswered':
        break
      case 'run':
        of(entry.scope, entry.key).runs.push(entry)
        break
      case 'effect':
        of(entry.scope, entry.key).effects.push(entry)
        break
      case 'step called':
      case 'step over':
      case 'step got':
        of(entry.scope, entry.key).steps.push(entry)
        break
      case 'told': {
        const { scope, key } = entry.line
        if (scope !== undefined && key !== undefined) of(scope, key).told.push(entry)
      }
    }
  }
  for (const each of asked) of(each.payment.scope, each.payment.key).asked.push(each)
  return [...histories.values()]
}

/** The claim that a run, or an effect, rests on. */
export function ownerOf({ claims }: KeyHistory, run: At<{ readonly attempt: number }>): Claim | undefined {
  return claims.findLast(
    ({ process, attempt, repliedAt }) => process === run.process && attempt === run.attempt && repliedAt <= run.at,
  )
}

/** When an owner sent the command that was to end its claim. */
export function endSentAt({ commands }: KeyHistory, token: string): number {
  const end = commands.find((each) => each.token === token && isEnd(each))
  return end?.sentAt ?? Number.POSITIVE_INFINITY
}

export function isEnd({ command }: Command): boolean {
  return command === 'complete' || command === 'release'
}

export function isTold({ told }: KeyHistory, event: string): boolean {
  return told.some(({ line }) => line.msg === event)
}

/** Of one scope and key: the bodies that were sent. */
export function paymentsOf({ asked }: KeyHistory): Payment[] {
  return [...new Map(asked.map(({ payment }) => [`${payment.reference} ${payment.amount}`, payment])).values()]
}
