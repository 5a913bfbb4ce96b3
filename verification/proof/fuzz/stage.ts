import type { RawReply } from '../../../test/support/raw-reply.js'
import type { Findings } from '../layer.js'
import { type Client, connectClient, type Heard, lose, type Patience, pause } from './client.js'
import { type Judge, mayStayUnanswered, type Pending } from './judge.js'
import { type KindName, SERVERS, type ServerName } from './mounts.js'
import { type Random, randomOf } from './random.js'
import { type Operation, operationOf, requestOf, type SentRequest } from './requests.js'
import type { Service } from './service.js'

/** What a play acts on. */
export interface Stage {
  readonly seed: number
  readonly service: Service
  readonly judge: Judge
  readonly findings: Findings
  readonly patience: Patience
  /** The handlers that make a bare server of this Node keep a connection open. */
  readonly leftOpen: ReadonlySet<KindName>
  /** Of the script that is played. */
  readonly script: number
  readonly random: Random
  log(connection: number): (what: string | Buffer) => void
  story(): string
  /** Counts what was tried. */
  tried(what: Tried, times?: number): void
}

export type Tried =
  | 'cut while sending'
  | 'connections'
  | 'pipelined'
  | 'races'
  | 'disconnects'
  | 'cuts'
  | 'repeated'
  | 'hostile'
  | 'left open'

export function serverOf(script: number): ServerName {
  return SERVERS[script % SERVERS.length] as ServerName
}

/** The same in every script that uses it. */
export function operation({ seed }: Stage, number: number, kind?: KindName): Operation {
  return { ...operationOf(randomOf(seed, number, 1), number, kind), server: serverOf(number) }
}

export function connect(stage: Stage, server: ServerName, number: number): Client {
  stage.tried('connections')
  return connectClient(stage.service.ports[server], stage.patience, stage.log(number))
}

/** Sends an operation on a connection of its own. A gate of its own is open from the start. */
export async function ask(stage: Stage, chosen: Operation, id: string, number: number): Promise<Heard> {
  if (id.startsWith('gate')) stage.service.release(id)
  const client = connect(stage, chosen.server, number)
  const heard = await sendAndHear(stage, client, requestOf(chosen, id, stage.random))
  client.leave('destroy')
  return heard
}

export async function sendAndHear(stage: Stage, client: Client, request: SentRequest): Promise<Heard> {
  const pending = stage.judge.sending(request)
  await client.write(request.bytes)
  return await heardBy(stage, client, pending)
}

export async function hear(stage: Stage, client: Client, pending: Pending): Promise<boolean> {
  return typeof (await heardBy(stage, client, pending)) !== 'string'
}

async function heardBy(stage: Stage, client: Client, pending: Pending): Promise<Heard> {
  const mayBeLeftOpen = stage.judge.mayBeLeftOpen(pending.request)
  const heard = await client.reply(pending.request.method, !mayBeLeftOpen)
  if (typeof heard !== 'string') stage.judge.heard(pending, heard)
  else if (heard === 'late' && mayBeLeftOpen) {
    stage.tried('left open')
    client.leave('reset') // A mere end would leave the server with its half of the connection.
  } else if (heard === 'cut while sending') stage.tried(heard)
  else if (heard !== 'closed' || !mayStayUnanswered(pending.request)) {
    await pause(100) // If the service has died, that is the story.
    if (!stage.service.hasExited()) stage.judge.unanswered(pending, heard)
  }
  return heard
}

/** Asks again until the key is no longer in flight: it must not stay so. */
export async function untilResolved(stage: Stage, same: Operation, prefix: string, from: number): Promise<Heard> {
  const { patience } = stage
  const until = patience.pulse.beats + patience.beats
  for (let i = from; ; i++) {
    const heard = await ask(stage, same, `${prefix}${stage.script}.${i}`, i)
    const isInFlight = typeof heard !== 'string' && isInFlightReply(heard)
    if (!isInFlight) {
      stage.findings.expect('L1', true, () => '')
      return heard
    }
    if (patience.pulse.beats > until) {
      lose(patience)
      stage.findings.expect('L1', false, () => `The key is in flight for good.\n${stage.story()}`)
      return 'late'
    }
    await pause(Math.min(2 * i, 50))
  }
}

function isInFlightReply(reply: RawReply): boolean {
  return reply.status === 409 && reply.body.includes('"code":"in_flight"')
}
