import fc from 'fast-check'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { senderOf } from '../../../adapters/redis/client.js'
import { histories, noVisits, repliesOfMachine, repliesOfStore } from '../../support/histories.js'
import {
  noOperatorVisits,
  type OperatedReply,
  operatedHistories,
  operatedRepliesOfMachine,
  operatedRepliesOfStore,
} from '../../support/operator-histories.js'
import { age } from './ageing.js'
import type { OpenClient } from './clients.js'
import { REDIS, REDIS_CLUSTER } from './grounds.js'

vi.setConfig({ testTimeout: 120_000 })

// A step of a history is a multiple of a minute, so what passes really, a few seconds at most, decides nothing.
const UNIT_MS = 60_000
const AT_ONCE = 40
const KEYS = ['k1', 'k2', 'k3']

/** Histories of one kind, and how often each thing in them must have happened. */
interface Trial<Event, Reply, Visits extends { readonly commands: number }> {
  readonly name: string
  readonly histories: (unitMs: number) => fc.Arbitrary<Event[]>
  readonly number: number
  readonly repliesOfStore: (
    history: Event[],
    store: RedisStore,
    advance: (ms: number) => Promise<void>,
  ) => Promise<Reply[]>
  readonly repliesOfMachine: (history: Event[], visits: Visits) => Reply[]
  readonly noVisits: () => Visits
  readonly fewestCommands: number
  readonly fewestVisits: number
}

onEachGround({
  name: 'random histories of commands',
  histories,
  number: 800,
  repliesOfStore,
  repliesOfMachine,
  noVisits,
  fewestCommands: 20_000,
  fewestVisits: 100,
})

onEachGround({
  name: 'random histories with operators in between',
  histories: operatedHistories,
  number: 320,
  repliesOfStore: operatedRepliesOfStore,
  repliesOfMachine: operatedRepliesOfMachine,
  noVisits: noOperatorVisits,
  fewestCommands: 10_000,
  fewestVisits: 20,
})

function onEachGround<Event, Reply extends OperatedReply, Visits extends { readonly commands: number }>(
  trial: Trial<Event, Reply, Visits>,
): void {
  describe.each([REDIS, REDIS_CLUSTER])(`${trial.name} on $name`, async ({ start, clients }) => {
    const { port, close } = await start()
    afterAll(close)

    test.each(['ioredis 6', 'node-redis 6'])('get the replies of the machine, through %s', async (name) => {
      const { client, close } = await (clients[name] as OpenClient)(port)
      const send = senderOf(client) as NonNullable<ReturnType<typeof senderOf>>
      const seed = fc.sample(fc.integer(), 1)[0] as number
      const all = fc.sample(trial.histories(UNIT_MS), { numRuns: trial.number, seed })
      const visits = trial.noVisits()

      async function replies(number: number): Promise<void> {
        const prefix = `history-${name}-${number}:`
        const store = new RedisStore({ client, prefix })
        const advance = async (ms: number) => void (await Promise.all(KEYS.map((key) => age(send, prefix + key, ms))))
        const history = all[number] as Event[]
        const seen = await trial.repliesOfStore(history, store, advance)
        const due = trial.repliesOfMachine(history, visits)
        expect(structuredClone(seen.map(toWholeUnits)), `seed ${seed}, history ${number}`).toEqual(structuredClone(due))
      }

      let next = 0
      async function worker(): Promise<void> {
        while (next < all.length) await replies(next++)
      }
      await Promise.all(Array.from({ length: AT_ONCE }, worker))
      close()
      expect(visits.commands).toBeGreaterThanOrEqual(trial.fewestCommands)
      // A run that tried nothing shows nothing.
      for (const [what, times] of Object.entries(visits)) expect(times, what).toBeGreaterThanOrEqual(trial.fewestVisits)
    })
  })
}

/** What was left of a lease before the time that passed really. */
function toWholeUnits(reply: OperatedReply): OperatedReply {
  if (!('record' in reply) || reply.record?.state !== 'in-flight') return reply
  const leaseRemainingMs = Math.ceil(reply.record.leaseRemainingMs / UNIT_MS) * UNIT_MS
  // No negative zero.
  return { ...reply, record: { ...reply.record, leaseRemainingMs: leaseRemainingMs + 0 } } as OperatedReply
}
