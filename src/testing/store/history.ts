import { Buffer } from 'node:buffer'
import type { Answer, Claim, Forgetting, StepChange } from '../../core/index.js'
import type { WholeStore } from './checked-store.js'

/** What happens in a law, one after the other. A function does what no event says. */
export type Event = Command | Walk | ConcurrentCommands | Wait | ((trial: StoreTrial) => Promise<void>)

/** The store on trial, and what the law's keys begin with. */
export interface StoreTrial {
  readonly store: WholeStore
  readonly key: string
}

/** In milliseconds, or in units: `'1u'` is short, and a law that a slow machine has spoilt is tried again with a longer unit. */
export type Duration = number | `${number}u`

/** One command to the store. Its sender has a token of its own. */
export interface Command {
  readonly type: 'command'
  readonly name: CommandName
  readonly sender: string
  readonly terms: Partial<Terms>
}

export type CommandName = 'begin' | 'renew' | 'complete' | 'release' | 'step' | 'inspect' | 'resolve' | 'forget'

/** What commands can say; each sends what its interface has. */
export interface Terms extends Omit<StepChange, 'state'> {
  /** Behind the law's own key. */
  readonly key: string
  readonly fingerprint: string | null
  readonly leaseMs: Duration
  readonly retentionMs: Duration
  readonly failedMs: Duration
  readonly unknownOutcome: Claim['unknownOutcome']
  /** By default, the one that `begin` returned. */
  readonly attempt: number
  readonly uncertain: boolean
  readonly answer: Answer | null
  readonly rerun: true
  readonly removes: boolean
  /** Of a step, or of the record that is to be forgotten. */
  readonly state: StepChange['state'] | Forgetting['state']
}

/** A whole walk, which lists what is there of the law's keys. */
export interface Walk {
  readonly type: 'walk'
  readonly name: 'list' | 'listScope'
  /** Behind the law's own key. */
  readonly scope: string
}

/** Commands at once: what comes of them is what comes of some order. */
export interface ConcurrentCommands {
  readonly type: 'at once'
  readonly commands: readonly Command[]
  /** Waits before a command is sent, by its place. */
  readonly delay?: (place: number, turn: () => Promise<void>) => Promise<void>
}

export interface Wait {
  readonly type: 'wait'
  /** `'nearly'`: until shortly before four units have passed; `'rest'`: until they have. A number: on a clock that can be advanced. */
  readonly until: 'unit' | 'nearly' | 'rest' | number
}

/** Until what lasts one unit is over. */
export const PASS: Wait = { type: 'wait', until: 'unit' }
export const NEARLY: Wait = { type: 'wait', until: 'nearly' }
export const REST: Wait = { type: 'wait', until: 'rest' }

export function createLeap(ms: number): Wait {
  return { type: 'wait', until: ms }
}

export const DAY_MS = 86_400_000
/** Longer than any test. */
export const LONG_MS = 3_600_000

export const FINGERPRINT = 'a'.repeat(64)
/** Differs in the last character: a fingerprint counts as a whole. */
export const OTHER_FINGERPRINT = `${'a'.repeat(63)}b`

export const ANSWER: Answer = {
  status: 201,
  statusMessage: '',
  headers: [['content-type', 'application/json']],
  body: new TextEncoder().encode('{"id":"payout_1"}'),
}
export const OTHER_ANSWER: Answer = { ...ANSWER, status: 200, body: new TextEncoder().encode('{"id":"payout_2"}') }
export const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, i) => i)

type TermOverrides = Partial<Terms>

/** Says commands, in the name of one token. */
export class Sender {
  constructor(
    readonly name: string,
    readonly usual: TermOverrides = {},
  ) {}

  /** The same sender with other terms. */
  copyWithTerms(terms: TermOverrides): Sender {
    return new Sender(this.name, { ...this.usual, ...terms })
  }

  begin(terms?: TermOverrides): Command {
    return this.#createCommand('begin', terms)
  }

  renew(terms?: TermOverrides): Command {
    return this.#createCommand('renew', terms)
  }

  complete(answer: Answer = ANSWER, terms?: TermOverrides): Command {
    return this.#createCommand('complete', { answer, ...terms })
  }

  release(terms?: TermOverrides): Command {
    return this.#createCommand('release', terms)
  }

  /** An uncertain failure. */
  lose(terms?: TermOverrides): Command {
    return this.release({ uncertain: true, ...terms })
  }

  /** `text`: the bytes of the result, as Latin-1; `null`: it was not kept. */
  step(
    label: string,
    state: StepChange['state'],
    order: number,
    text: string | null = null,
    terms?: TermOverrides,
  ): Command {
    const result = text === null ? null : Buffer.from(text, 'latin1')
    return this.#createCommand('step', { label, state, order, result, ...terms })
  }

  inspect(terms?: TermOverrides): Command {
    return this.#createCommand('inspect', terms)
  }

  /** `null`: it failed. */
  resolve(attempt: number, answer: Answer | null | 'rerun', terms?: TermOverrides): Command {
    const decision = answer === 'rerun' ? ({ answer: null, rerun: true } as const) : { answer }
    return this.#createCommand('resolve', { attempt, ...decision, ...terms })
  }

  /** By default, the answer of a first attempt. */
  forget(terms?: TermOverrides): Command {
    return this.#createCommand('forget', { state: 'completed', attempt: 1, removes: false, ...terms })
  }

  #createCommand(name: CommandName, terms: TermOverrides = {}): Command {
    return { type: 'command', name, sender: this.name, terms: { ...this.usual, ...terms } }
  }
}

/** Who claims first; who claims next, and after that; who has never claimed; who claims with another fingerprint. */
export const owner = new Sender('the owner')
export const next = new Sender('another')
export const third = new Sender('a third')
export const stranger = new Sender('a stranger', { attempt: 1 })
export const corrected = new Sender('another with another fingerprint', { fingerprint: OTHER_FINGERPRINT })
export const refusing = new Sender('another that refuses unknown outcomes', { unknownOutcome: 'refuse' })
export const operator = new Sender('an operator')

/** A claim whose lease is over. */
export const LAPSE: readonly Event[] = [owner.begin({ leaseMs: '1u' }), PASS]

export const TAKEN_OVER: readonly Event[] = [...LAPSE, next.begin()]
export const COMPLETED = [owner.begin(), owner.complete()] as const
export const FAILED = [owner.begin(), owner.release()] as const
/** A failure that may have had its effect. */
export const LOST = [owner.begin(), owner.lose()] as const

export const LIST: Walk = { type: 'walk', name: 'list', scope: '' }

export function listScope(scope = ''): Walk {
  return { type: 'walk', name: 'listScope', scope }
}

export function createAtOnce(...commands: readonly Command[]): ConcurrentCommands {
  return { type: 'at once', commands }
}

/** So many senders, each with a token of its own. */
export function createSenders(size: number): Sender[] {
  return Array.from({ length: size }, (_, i) => new Sender(`sender ${i + 1}`))
}

/** The same history with another key, of which senders have tokens of their own if they are named by it. */
export function moveToKey(key: string, history: readonly Event[], names = ''): Event[] {
  return history.map((event) => {
    if (!('sender' in event)) return event
    return { ...event, sender: event.sender + names, terms: { ...event.terms, key } }
  })
}
