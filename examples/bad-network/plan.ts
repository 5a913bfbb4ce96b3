import { type Choices, choicesOf } from './choices.js'
import { type Instruction, instructionOf, type Merchant, merchants } from './instructions.js'

/** One payment that somebody wants to be made once, and what will happen to it. */
export interface Payment extends Instruction {
  /** How the service's books call it. */
  readonly name: string
  readonly merchant: Merchant
  readonly key: string
  /** Those who send it at the same moment. */
  readonly senders: readonly Sender[]
  /** How often it is sent again after its answer. */
  readonly timesAgain: number
  /** Another amount under the same key, after the answer: it must not be carried out. */
  readonly changed?: Instruction & { readonly name: string }
  /** The same request under the same key by the other merchant: a payment of its own. */
  readonly shared?: Payment
}

export interface Sender {
  /** Where its first try goes, counted round; each further one goes to the next. */
  readonly firstProcess: number
  /** Its first tries; further ones meet no fault. */
  readonly tries: readonly Try[]
  readonly choices: Choices
}

export interface Try {
  readonly fault?: NetworkFault
  /** How long the service takes. */
  readonly delayMs: number
}

/** What can happen to one request on its way. */
export type NetworkFault = (typeof PASSING)[number] | 'ownerLost' | 'processKilled'

export interface Plan {
  readonly payments: readonly Payment[]
  /** Those whose process is killed behind their effect, in the middle of the run. */
  readonly victims: readonly Payment[]
}

export interface PlanOptions {
  readonly seed: number
  readonly operations: number
  /** Makes keys and names new, for a service that remembers earlier runs. */
  readonly run: string
  readonly withKill: boolean
}

/** No delay is longer: what still runs when the last client is done has ended by then. */
export const LONGEST_DELAY_MS = 900

const MOST_VICTIMS = 4

const PASSING = ['cutOff', 'answerLost', 'timedOut', 'hungUp'] as const

/** Each in turn, so that no run goes without one. Chance adds more to each. */
const STORIES = [
  ...['calm', 'answerLost', 'sentAtOnce', 'timedOut', 'bodyChanged'],
  ...['hungUp', 'keyShared', 'cutOff', 'sentAgain', 'ownerLost'],
] as const

/** The same seed makes the same plan, but for the names. */
export function planOf({ seed, operations, run, withKill }: PlanOptions): Plan {
  const victims: Payment[] = []
  const payments: Payment[] = []
  let wanted = 0
  const next = () => subjectOf(seed, run, ++wanted)

  while (withKill && victims.length < Math.min(MOST_VICTIMS, operations)) victims.push(victimOf(next()))
  while (wanted < operations) {
    const story = STORIES[payments.length % STORIES.length]
    if (story !== 'keyShared' || wanted + 2 > operations) payments.push(paymentOf(next(), story))
    else payments.push(sharedByBoth(next(), next()))
  }
  return { payments, victims }
}

/** All payments of a plan, each for itself. */
export function wantedIn({ payments, victims }: Plan): Payment[] {
  return [...victims, ...payments].flatMap((payment) => [payment, ...(payment.shared ? [payment.shared] : [])])
}

interface Subject {
  readonly name: string
  readonly choices: Choices
  senderWith(delayMs: number, ...faults: readonly (NetworkFault | undefined)[]): Sender
}

/** Each sender has choices of its own: what it chooses does not depend on who was faster. */
function subjectOf(seed: number, run: string, number: number): Subject {
  let senders = 0
  return {
    name: `${run}-${number}`,
    choices: choicesOf(seed, `payment ${number}`),
    senderWith(delayMs, ...faults) {
      const choices = choicesOf(seed, `payment ${number} sender ${++senders}`)
      const tries = faults.flatMap((fault) => (fault === undefined ? [] : [tryWith(fault, delayMs, choices)]))
      // Those who race meet at different processes.
      const firstProcess = faults.includes('processKilled') ? 0 : number + senders
      return { firstProcess, tries: tries.length > 0 ? tries : [{ delayMs }], choices }
    },
  }
}

function tryWith(fault: NetworkFault, delayMs: number, choices: Choices): Try {
  return { fault, delayMs: fault === 'timedOut' ? choices.between(400, LONGEST_DELAY_MS) : delayMs }
}

function victimOf({ name, choices, senderWith }: Subject): Payment {
  return { ...startOf(name, choices), senders: [senderWith(0, 'processKilled')], timesAgain: 1 }
}

function sharedByBoth(one: Subject, other: Subject): Payment {
  const payment = paymentOf(one, 'keyShared')
  const merchant = merchants.find((each) => each !== payment.merchant) ?? payment.merchant
  const { changed: _, ...same } = payment
  return { ...payment, shared: { ...same, merchant, senders: [other.senderWith(100)], timesAgain: 1 } }
}

function paymentOf({ name, choices, senderWith }: Subject, story: string | undefined): Payment {
  const start = startOf(name, choices)
  const has = (one: string, orInPercent: number) => choices.happens(orInPercent) || story === one
  const atOnce = has('sentAtOnce', 8) ? choices.between(2, 5) : 1
  // A race is one only while an owner runs.
  const delayMs = atOnce > 1 || choices.happens(20) ? choices.between(20, 200) : 0
  const fault = [...PASSING, 'ownerLost' as const].find((one) => one === story)
  const passing = () => (choices.happens(25) ? choices.oneOf(PASSING) : undefined)
  return {
    ...start,
    senders: Array.from({ length: atOnce }, (_, i) => senderWith(delayMs, i === 0 ? fault : undefined, passing())),
    timesAgain: has('sentAgain', 8) ? choices.between(1, 3) : 0,
    ...(has('bodyChanged', 4) && { changed: { ...instructionOf(choices, start), name: `${name}-changed` } }),
  }
}

function startOf(name: string, choices: Choices) {
  return { name, key: name, merchant: choices.oneOf(merchants), ...instructionOf(choices) }
}
