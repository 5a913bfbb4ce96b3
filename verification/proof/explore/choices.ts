import type { Client } from './client.js'
import type { Content, End, Label, StepEnd } from './history.js'
import type { Message } from './network.js'
import type { World } from './world.js'

/** What may happen next. */
export type Choice =
  | { readonly do: 'arrive'; readonly scope: string; readonly content: Content }
  /** What becomes of a command, or of a reply, that is under way. */
  | { readonly do: 'deliver'; readonly message: number; readonly how: Delivery }
  | { readonly do: 'end'; readonly by: number; readonly end: End }
  | { readonly do: 'step'; readonly by: number; readonly label: Label }
  | { readonly do: 'end_step'; readonly by: number; readonly end: StepEnd }
  | { readonly do: 'advance' }
  | { readonly do: 'crash' | 'stall' | 'resume'; readonly by: number }
  | { readonly do: 'lose_record'; readonly key: string }

export type Delivery =
  | 'whole'
  /** The command comes at any later time. */
  | 'request_held'
  | 'request_lost'
  | 'reply_lost'
  /** The reply comes at any later time. */
  | 'reply_held'
  /** The reply is lost, and the store's client sends the command once more. */
  | 'sent_again'
  /** A copy comes at any later time. */
  | 'copied'
  /** An error comes back, without or with the effect. */
  | 'broken_before'
  | 'broken_after'

const DELIVERY_FAULTS = [
  'request_held',
  'request_lost',
  'reply_lost',
  'reply_held',
  'sent_again',
  'copied',
  'broken_before',
  'broken_after',
] as const satisfies readonly Delivery[]

const STEP_ENDS: readonly StepEnd[] = ['done', 'thrown', 'declined']
/** With steps: what else a failure may be is looked at without them. */
const FEWER_ENDS: readonly End[] = ['success', 'refusal', 'no_answer']
const ENDS: readonly End[] = ['success', 'refusal', 'late_refusal', 'breakdown', 'no_answer']

/** Whose key it is, and who else uses the same one. */
export const SCOPE = 'acme'
const OTHER_SCOPE = 'globex'

/** How much may happen on a path. */
export interface Bounds {
  readonly attempts: number
  readonly faults: number
  /** Whether later requests may differ from the first, or come from another scope. */
  readonly others: boolean
  /**
   * How many steps a handler takes at most. With them, only what concerns them is tried: faults of their commands, a begin
   * that is sent again, requests that come one after another, and time that passes where something waits for it.
   */
  readonly steps: number
}

/** All that may happen next, after so many faults. */
export function choicesIn(world: World, bounds: Bounds, faultsSoFar: number): Choice[] {
  return allChoices(world, bounds).filter((choice) => faultsSoFar + faultsOf(choice) <= bounds.faults)
}

function allChoices(world: World, bounds: Bounds): Choice[] {
  const { network, clients, records } = world
  const onTheWay = network.messages.flatMap((message, index) => deliveries(world, message, index, bounds))
  const senders = network.messages.filter(({ isFresh }) => isFresh).map(({ by }) => by)
  // What else might happen first may as well happen before or after, unless something is held up: and that is a fault.
  if (senders.length > 0) return [...onTheWay, ...senders.flatMap((by) => stops(world, by))]

  return [
    ...arrivals(world, bounds),
    ...onTheWay,
    ...clients.flatMap(({ index }) => ofProcess(world, index, bounds)),
    ...[...records.keys()].map((key): Choice => ({ do: 'lose_record', key })),
    ...(mayAdvance(world, bounds) ? [{ do: 'advance' } as const] : []),
  ]
}

/** How many faults a choice is. Nothing that a process or a client decides by itself is one. */
export function faultsOf(choice: Choice): number {
  switch (choice.do) {
    case 'crash':
    case 'stall':
    case 'lose_record':
      return 1
    case 'deliver':
      return choice.how === 'whole' ? 0 : 1
    default:
      return 0
  }
}

function mayAdvance(world: World, { steps }: Bounds): boolean {
  if (world.nextDueAt() === Number.POSITIVE_INFINITY) return false
  return steps === 0 || world.network.messages.length > 0 || world.clients.some(isWaiting)
}

/** It has died or stopped, so that its lease lapses; or it waits for the store. */
function isWaiting({ process, stage, steps, unconfirmedStep }: Client): boolean {
  if (process !== 'awake' || unconfirmedStep !== null) return true
  return stage === 'deciding' || stage === 'ending' || steps.calls.at(-1)?.stage === 'asked'
}

function arrivals({ clients }: World, { attempts, others, steps }: Bounds): Choice[] {
  if (clients.length >= attempts) return []
  if (steps > 0 && clients.some(({ process, stage }) => process === 'awake' && stage !== 'told')) return []
  const same: Choice = { do: 'arrive', scope: SCOPE, content: 'a payout' }
  if (clients.length === 0 || !others) return [same]
  const other: Choice = { ...same, content: 'another payout' }
  // Whatever the other scope does, nothing else depends on it: so it comes last, and without faults.
  return clients.length < attempts - 1 ? [same, other] : [same, other, { ...same, scope: OTHER_SCOPE }]
}

function deliveries({ clients, isAwake }: World, sent: Message, message: number, { steps }: Bounds): Choice[] {
  const { by, reply, isFresh, command } = sent
  const deliver = (how: Delivery): Choice => ({ do: 'deliver', message, how })
  if (reply !== undefined) return isAwake(by) ? [deliver('whole')] : []
  const isOther = clients[by]?.scope !== SCOPE
  if (!isFresh || !isAwake(by) || isOther) return [deliver('whole')]
  if (steps > 0 && command.name === 'begin') return [deliver('whole'), deliver('sent_again')]
  if (steps > 0 && command.name !== 'step') return [deliver('whole')]
  return [deliver('whole'), ...DELIVERY_FAULTS.map(deliver)]
}

function ofProcess(world: World, by: number, bounds: Bounds): Choice[] {
  const client = world.clients[by]
  if (client?.process === 'stalled') return [{ do: 'resume', by }]
  if (client?.process !== 'awake') return []
  const all = bounds.steps > 0 ? FEWER_ENDS : ENDS
  const ends = client.scope === SCOPE ? all : all.slice(0, 1)
  const { stage, steps } = client
  const label = stage === 'running' ? nextStep(client, bounds.steps) : null
  return [
    ...(stage === 'running' ? ends.map((end): Choice => ({ do: 'end', by, end })) : []),
    ...(label === null ? [] : [{ do: 'step', by, label } as const]),
    ...(steps.isWorking() ? STEP_ENDS.map((end): Choice => ({ do: 'end_step', by, end })) : []),
    ...stops(world, by),
  ]
}

/** The step that a handler takes next, if it takes so many. */
export function nextStep({ steps }: Client, most: number): Label | null {
  return steps.calls.length < most ? steps.next() : null
}

/** A process that still does something may die, or stop for any time. */
function stops({ clients, clock }: World, by: number): Choice[] {
  const client = clients[by]
  const isBusy = client?.stage !== 'told' || client.steps.isWorking() || clock.timersOf(by).length > 0
  if (!isBusy || client?.process !== 'awake' || client.scope !== SCOPE) return []
  return [
    { do: 'crash', by },
    { do: 'stall', by },
  ]
}

export async function take(choice: Choice, world: World): Promise<void> {
  switch (choice.do) {
    case 'arrive':
      await world.arrive(choice.scope, choice.content)
      return
    case 'deliver':
      return deliver(world.network.messages[choice.message] as Message, choice.how, world)
    case 'end':
      return world.end(choice.by, choice.end)
    case 'step':
      return world.step(choice.by, choice.label)
    case 'end_step':
      return world.endStep(choice.by, choice.end)
    case 'advance':
      return world.advance()
    case 'lose_record':
      return world.loseRecord(choice.key)
    default:
      world[choice.do](choice.by)
      for (const message of world.network.messages) if (message.by === choice.by) message.isFresh = false
  }
}

/** A command takes effect, and its reply is heard, unless something comes between. */
export async function deliver(message: Message, how: Delivery, world: World): Promise<void> {
  const { network, isAwake } = world
  if (how === 'request_held') {
    message.isFresh = false
    return
  }
  if (how !== 'sent_again') network.take(message)
  if (how === 'request_lost') return
  if (how === 'broken_before') return world.hear(message, null)

  const reply = message.reply ?? world.execute(message)
  if (how === 'broken_after') return world.hear(message, null)
  if (how === 'reply_lost' || how === 'sent_again' || message.isCopy) return
  if (how === 'reply_held' || !isAwake(message.by)) {
    if (world.clients[message.by]?.process !== 'dead') network.put({ ...message, reply, isFresh: false })
    return
  }
  if (how === 'copied') network.put({ ...message, isCopy: true, isFresh: false })
  await world.hear(message, reply)
}
