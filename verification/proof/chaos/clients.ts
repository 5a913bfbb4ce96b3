import { type Ask, isSuccess, type Manner, type Payment, SCOPES } from './asking.js'
import type { Choices } from './choices.js'
import { pause } from './faults.js'

/** Where clients shop, and for how long. */
export interface Street {
  /** Makes its keys its own. */
  readonly name: string
  readonly ask: Ask
  readonly services: number
  readonly leaseMs: number
  isOpen(): boolean
}

/** One client after another opens: each repeats, races, aborts and changes its mind, as its choices say. */
export async function shop(clients: number, street: Street, choices: Choices): Promise<void> {
  const visits = Array.from({ length: clients }, (_, client) =>
    visit(`${street.name}-${client}`, street, choices.of(`client ${client}`)),
  )
  await Promise.all(visits)
}

type Habit = (payment: Payment, choices: Choices) => Promise<unknown>

async function visit(name: string, street: Street, choices: Choices): Promise<void> {
  const { ask, services, leaseMs, isOpen } = street
  const done: Payment[] = []
  let deck: Habit[] = []

  const anywhere = () => choices.between(0, services - 1)

  /** As long as handlers take: some longer than the lease. */
  function manner(): Manner {
    const slow = choices.chance(0.25)
    const verySlow = choices.chance(0.04)
    return { delayMs: verySlow ? leaseMs * 1.3 : slow ? choices.between(200, leaseMs / 2) : choices.between(0, 60) }
  }

  /** Until there is an answer that will not change, as a client does that obeys `X-Should-Retry`. */
  async function insist(payment: Payment): Promise<void> {
    for (let tries = 0; tries < 25 && isOpen(); tries++) {
      const asked = await ask(payment, anywhere(), manner())
      if (isFinal(asked)) return
      await pause(choices.between(20, 200))
    }
  }

  const habits: readonly Habit[] = [
    (payment) => insist(payment),
    // The first waits for its own answer, however long its service stalls; the other goes where there is one.
    (payment) => Promise.all([ask(payment, anywhere(), manner()), insist(payment)]),
    (payment) => Promise.all([ask(payment, anywhere(), manner()), insist(payment), insist(payment)]),
    async (payment) => {
      await ask(payment, anywhere(), { delayMs: choices.between(50, 400), abortAfterMs: choices.between(5, 150) })
      await insist(payment)
    },
    async (payment) => {
      const other = { ...payment, reference: `${payment.reference} or so` }
      await Promise.all([ask(payment, anywhere(), manner()), ask(other, anywhere(), manner())])
      await insist(payment)
      await insist(other)
    },
    async (payment) => {
      await ask({ ...payment, amount: -1 }, anywhere(), manner())
      await insist(payment)
    },
    async (payment) => {
      await ask(payment, anywhere(), manner())
      for (const old of choices.shuffled(done).slice(0, 3)) await ask(old, anywhere())
      await insist(payment)
    },
  ]

  for (let errand = 0; isOpen(); errand++) {
    if (deck.length === 0) deck = choices.shuffled(habits)
    const habit = deck.pop() as Habit
    const key = `${name}-${errand}`
    const scopes = choices.chance(0.3) ? SCOPES : [choices.one(SCOPES)]
    const isOrder = choices.chance(0.4)
    const payments = scopes.map((scope): Payment => ({ scope, key, reference: key, amount: 1_000 + errand, isOrder }))
    // One after the other: the second must find nothing of the first.
    for (const payment of payments) {
      await habit(payment, choices)
      done.push(payment)
    }
  }
}

/** Nothing would change by asking again. */
export function isFinal(asked: Awaited<ReturnType<Ask>>): boolean {
  if (isSuccess(asked)) return true
  const { reply } = asked
  return reply !== undefined && reply.status !== 503 && reply.code !== 'in_flight'
}
