import { randomUUID } from 'node:crypto'
import type { FakeClock } from '../../../test/support/fake-clock.js'
import {
  bytesOf,
  type Connection,
  connectTo,
  type RawReply,
  type RawRequest,
} from '../../../test/support/raw-client.js'
import type { Findings } from '../layer.js'
import { ownPulse } from '../limits/pulse.js'
import type { Random } from './random.js'
import { type Service, TIMES } from './service.js'

/** Of this process, in which the service is too. */
const REPLY_BEATS = 400

/** So fast that few thousand records live at a time, and so slow that no lease lapses under a handler. */
const MS_PER_REQUEST = 450

/** How many were answered, by what was asked of the service. */
export type Asked = Record<(typeof STEPS)[number][0], number>

/** Asks for one thing after the other, on two connections that are kept alive and on some that are not. */
export interface Client {
  readonly asked: Asked
  requests(): number
  step(): Promise<void>
  /** The store has forgotten all records. */
  forget(): void
  leave(): void
}

const STEPS = [
  ['first', 30],
  ['retry', 22],
  ['mismatch', 6],
  ['failure', 10],
  ['conflict', 6],
  ['stream', 4],
  ['file', 3],
  ['large', 3],
  ['left in its body', 8],
  ['left while it runs', 8],
] as const

export function clientOf(service: Service, clock: FakeClock, findings: Findings, random: Random): Client {
  const asked = Object.fromEntries(STEPS.map(([name]) => [name, 0])) as Asked
  const line = connectTo(service.port)
  const other = connectTo(service.port)
  const made: { readonly raw: RawRequest; readonly body: string; readonly at: number }[] = []
  let requests = 0

  async function ask(raw: RawRequest, on: Connection = line): Promise<RawReply> {
    requests++
    on.send(raw)
    return answered(on, raw)
  }

  async function answered(on: Connection, { path, key }: RawRequest): Promise<RawReply> {
    const reply = await ownPulse.within(REPLY_BEATS, on.reply()).catch((error: Error) => error)
    const isAnswered = !(reply instanceof Error)
    findings.expect('L2', isAnswered, () => `POST ${path}, key ${key}: ${reply}`)
    if (!isAnswered) throw reply
    return reply
  }

  const steps: Record<keyof Asked, () => Promise<void>> = {
    async first() {
      const raw = requestFor('/make')
      const { status, body } = await ask(raw)
      findings.expect('L1', status === 201, () => `a new key got ${status}: ${body}`)
      made[random.below(8)] = { raw, body: `${body}`, at: clock.now() }
    },
    async retry() {
      const known = Object.values(made).find(({ at }) => clock.now() - at < TIMES.retentionMs / 2)
      if (known === undefined) return
      const reply = await ask(known.raw)
      const isReplay = reply.header('idempotent-replayed') === 'true'
      findings.expect('S4', isReplay, () => `a retry was no replay: ${reply.status} ${reply.body}`)
      findings.expect('S2', `${reply.body}` === known.body, () => `a replay of ${known.body} is ${reply.body}`)
    },
    async mismatch() {
      const known = Object.values(made).find(({ at }) => clock.now() - at < TIMES.retentionMs / 2)
      if (known === undefined) return
      const { status, body } = await ask({ ...known.raw, body: { amount: 2 } })
      findings.expect('S9', status === 409, () => `another request under a known key got ${status}: ${body}`)
    },
    async failure() {
      const raw = { ...requestFor('/fail'), body: { effect: random.below(2) === 1 } }
      const { status } = await ask(raw)
      const again = await ask(raw)
      findings.expect(
        'S8',
        status === 500 && again.status === 500,
        () => `a failure got ${status}, then ${again.status}`,
      )
    },
    async conflict() {
      const raw = requestFor('/wait')
      const door = service.doorOf(raw.key)
      const first = ask(raw)
      await ownPulse.within(REPLY_BEATS, Promise.race([door.entered, first]))
      const { status, body } = await ask(raw, other)
      findings.expect('S1', status === 409 && door.runs() === 1, () => `a duplicate got ${status}: ${body}`)
      door.goOn()
      await first
      door.remove()
    },
    async stream() {
      await askTwice('/stream')
    },
    async file() {
      await askTwice('/file')
    },
    async large() {
      await ask(requestFor('/large'))
    },
    async 'left in its body'() {
      const raw = requestFor('/make')
      const bytes = bytesOf(raw)
      await leaveAfter(bytes.subarray(0, bytes.length - 3))
      const { status, header, body } = await ask(raw)
      const isFirst = status === 201 && header('idempotent-replayed') === undefined
      findings.expect('L1', isFirst, () => `a request whose first try never arrived got ${status}: ${body}`)
    },
    async 'left while it runs'() {
      const raw = requestFor('/wait')
      const door = service.doorOf(raw.key)
      await leaveAfter(bytesOf(raw), door.entered)
      await ownPulse.within(REPLY_BEATS, door.deserted)
      const early = await ask(raw)
      door.goOn()
      const { status, header, body } = await settledReply(raw)
      const isReplay = status === 201 && header('idempotent-replayed') === 'true'
      findings.expect('S11', early.status === 409 && isReplay && door.runs() === 1, () => {
        return `its client had left: a retry got ${early.status}, then ${status} ${body}; the handler ran ${door.runs()} times`
      })
      door.remove()
    },
  }

  async function askTwice(path: string): Promise<void> {
    const raw = requestFor(path)
    const first = await ask(raw)
    const second = await ask(raw)
    const isSame = first.status === 200 && first.body.equals(second.body)
    findings.expect('S2', isSame, () => `POST ${path} got ${first.status}, then ${second.status}, or other bytes`)
  }

  /** Until the run that goes on has ended. */
  async function settledReply(raw: RawRequest): Promise<RawReply> {
    for (let tries = 0; ; tries++) {
      const reply = await ask(raw)
      if (reply.status !== 409 || tries === 100) return reply
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async function leaveAfter(bytes: Buffer, moment?: Promise<void>): Promise<void> {
    requests++
    const leaving = connectTo(service.port)
    leaving.socket.write(bytes)
    await ownPulse.within(
      REPLY_BEATS,
      moment ?? new Promise<void>((resolve) => leaving.socket.once('connect', resolve)),
    )
    leaving.socket.destroy()
    await leaving.closed
  }

  return {
    asked,
    requests: () => requests,
    async step() {
      const name = random.pick(STEPS)
      const before = requests
      await steps[name]()
      clock.advance(MS_PER_REQUEST * (requests - before))
      if (requests > before) asked[name]++
    },
    forget() {
      made.length = 0
    },
    leave() {
      line.socket.destroy()
      other.socket.destroy()
    },
  }
}

function requestFor(path: string): RawRequest & { readonly key: string } {
  return { path, key: randomUUID(), body: { amount: 1 } }
}
