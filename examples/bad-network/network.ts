import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Choices } from './choices.js'
import type { NetworkFault, Try } from './plan.js'

export interface Sent {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Reply {
  readonly status: number
  header(name: string): string | undefined
  readonly body: Buffer
}

/** What a client knows after one try. Without a reply, the request may have been carried out or not: it cannot tell. */
export interface Outcome {
  readonly reply: Reply | null
  /** Whether the planned fault did happen; of `processKilled`, who kills knows. */
  readonly struck: boolean
}

/** How long a client waits, and how long under a fault that takes the answer away. */
const PATIENCE_MS = 6_000
const patienceMs: Partial<Record<NetworkFault, number>> = { timedOut: 200, ownerLost: 500, processKilled: 10_000 }

/** Sends a request once, over a connection of its own, and lets the planned fault happen to it. */
export async function sendOnce(sent: Sent, { fault, delayMs }: Try, choices: Choices): Promise<Outcome> {
  const body = Buffer.from(sent.body)
  const limit = AbortSignal.timeout((fault && patienceMs[fault]) ?? PATIENCE_MS)
  const outgoing = request(sent.url, {
    method: 'POST',
    agent: false,
    signal: limit,
    headers: {
      ...sent.headers,
      'content-type': 'application/json',
      'content-length': body.length,
      ...(delayMs > 0 && { 'x-demo-delay-ms': delayMs }),
      ...(fault === 'ownerLost' && { 'x-demo-crash': 'true' }),
      ...(fault === 'processKilled' && { 'x-demo-crash': 'held' }),
    },
  })
  outgoing.on('error', () => {}) // Whoever waits is told as well.

  try {
    if (fault === 'cutOff') {
      await sendPart(outgoing, body.subarray(0, choices.between(0, body.length - 1)))
      return { reply: null, struck: true }
    }
    outgoing.end(body)
    if (fault === 'hungUp') {
      await once(outgoing, 'finish')
      return { reply: null, struck: true }
    }
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    // The service has answered; what it said is never read.
    if (fault === 'answerLost') return { reply: null, struck: true }
    return { reply: await replyFrom(answer), struck: false }
  } catch {
    return { reply: null, struck: limit.aborted && (fault === 'timedOut' || fault === 'ownerLost') }
  } finally {
    outgoing.destroy()
  }
}

/** The head and some of the body; where that is empty, a connection and nothing more. */
async function sendPart(outgoing: ClientRequest, part: Buffer): Promise<void> {
  const [socket] = (await once(outgoing, 'socket')) as [Socket]
  if (socket.connecting) await once(socket, 'connect')
  if (part.length > 0) await new Promise((resolve) => outgoing.write(part, resolve))
}

async function replyFrom(answer: IncomingMessage): Promise<Reply> {
  const body = await buffer(answer)
  const header = (name: string) => {
    const value = answer.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
  return { status: answer.statusCode ?? 0, header, body }
}
