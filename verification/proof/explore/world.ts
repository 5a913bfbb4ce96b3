import { type Client, createClient } from './client.js'
import type { Content, End, Entry, Label, Observed, Reply, StepEnd } from './history.js'
import { createNetwork, type Message, type Network } from './network.js'
import type { Policy, Processes } from './processes.js'
import { execute, type Records } from './records.js'
import type { VirtualClock } from './virtual-clock.js'

/** Requests in processes of their own, the store, and what is between them. Each step leaves all of it at rest. */
export interface World {
  readonly policy: Policy
  readonly clients: readonly Client[]
  readonly network: Network
  readonly records: Records
  readonly clock: VirtualClock
  arrive(scope: string, content: Content): Promise<Client>
  execute(message: Message): Reply
  /** A reply, or an error (`null`), reaches the process that asked. */
  hear(message: Message, reply: Reply | null): Promise<void>
  /** The handler of this request ends. */
  end(by: number, end: End): Promise<void>
  /** It takes a step. */
  step(by: number, label: Label): Promise<void>
  /** The work of its step ends. */
  endStep(by: number, end: StepEnd): Promise<void>
  crash(by: number): void
  stall(by: number): void
  resume(by: number): void
  loseRecord(key: string): void
  /** When something is due next; infinite: nothing is. */
  nextDueAt(): number
  /** Time goes on until something is due, but no longer than this, and timers fire. */
  advance(untilMs?: number): Promise<void>
  isAwake(by: number): boolean
}

export function createWorld(processes: Processes, clock: VirtualClock, watch: (entry: Entry) => void): World {
  const clients: Client[] = []
  const network = createNetwork()
  const records: Records = new Map()
  clock.reset()

  const record = (what: Observed) => watch({ ...what, at: clock.now() })
  const isAwake = (by: number) => clients[by]?.process === 'awake'
  const clientOf = (by: number) => clients[by] as Client

  processes.connect({
    send(by, key, command) {
      if (command.name === 'renew') clientOf(by).renewedAt = clock.now()
      if (command.name === 'step') {
        const client = clientOf(by)
        client.sentSteps++
        if (command.own.state !== 'begun') client.unconfirmedStep = command
      }
      return network.send(by, key, command, clock.now())
    },
    hear(by, event) {
      if (event.type === 'lease_lost') clientOf(by).leaseLost = event.reason
      record({ type: 'said', by, event: event.type })
    },
  })

  /** A lapse is an instant at which something changes, though no timer fires. */
  function nextLapseAt(): number {
    let next = Number.POSITIVE_INFINITY
    for (const stored of records.values()) {
      if (stored.state === 'in-flight' && stored.leaseUntil > clock.now()) next = Math.min(next, stored.leaseUntil)
    }
    return next
  }

  const nextDueAt = () => Math.min(clock.nextDueAt(isAwake), nextLapseAt())

  return {
    policy: processes.policy,
    clients,
    network,
    records,
    clock,
    nextDueAt,
    isAwake,

    async arrive(scope, content) {
      const by = clients.length
      const client = createClient(by, scope, content, clock, record)
      clients.push(client)
      record({ type: 'arrived', by, scope, content })
      await clock.as(by, () => client.start(processes.engineOf(by)))
      return client
    },

    execute({ by, key, command }) {
      const before = records.get(key) ?? null
      const reply = execute(records, key, command, clock.now())
      record({ type: 'executed', by, command, before, after: records.get(key) ?? null, reply })
      return reply
    },

    async hear({ by, command, sentAt, resolve, reject }, reply) {
      record({ type: 'heard', by, command: command.name, reply })
      const client = clientOf(by)
      if (client.unconfirmedStep === command && reply !== null) client.unconfirmedStep = null
      if ((command.name === 'renew' || command.name === 'step') && reply !== null && 'ok' in reply && reply.ok) {
        client.confirmedAt = Math.max(client.confirmedAt, sentAt)
      }
      await clock.as(by, () => (reply === null ? reject(new Error('The connection broke.')) : resolve(reply)))
    },

    async end(by, how) {
      await clock.as(by, () => clientOf(by).end(how))
    },

    async step(by, label) {
      await clock.as(by, () => clientOf(by).step(label))
    },

    async endStep(by, how) {
      await clock.as(by, () => clientOf(by).steps.end(how))
    },

    crash(by) {
      record({ type: 'crashed', by })
      clientOf(by).process = 'dead'
      clock.forget(by)
      for (const message of network.messages.filter((each) => each.by === by && each.reply)) network.take(message)
    },

    stall(by) {
      record({ type: 'stalled', by })
      clientOf(by).process = 'stalled'
    },

    resume(by) {
      record({ type: 'resumed', by })
      clientOf(by).process = 'awake'
    },

    loseRecord(key) {
      const scope = key.slice(0, key.indexOf(':'))
      records.delete(key)
      record({ type: 'record_lost', scope })
    },

    async advance(untilMs = Number.POSITIVE_INFINITY) {
      clock.moveTo(Math.max(clock.now(), Math.min(nextDueAt(), untilMs)))
      for (const { index } of clients) if (isAwake(index)) await clock.fire(index)
    },
  }
}
