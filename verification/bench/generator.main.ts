// The load generator, in a process of its own: it costs little, so that the service is what is waited for.
import { answerCalls } from './calls.js'
import { Client } from './client.js'
import type { Load, Ring, Seen } from './generator.js'
import { KEY, MERCHANT } from './protection.js'
import { quantile } from './statistics.js'

/** How many answers a replay chooses from, if nothing else is asked for. */
const RING = 200

let keyCount = 0
/** The keys of each service that have their answers, by its port. */
const rings = new Map<number, { readonly from: number; readonly length: number }>()

/** Sends as many requests as the ring has keys, once each, so that each has its answer. */
async function prime({ port, body, answers = RING }: Ring): Promise<Seen> {
  rings.set(port, { from: keyCount, length: answers })
  return send({ port, body, connections: Math.min(8, answers) }, { amount: answers }, () => keyCount++)
}

function fire(load: Load): Promise<Seen> {
  let sent = 0
  const { from, length } = rings.get(load.port) ?? { from: 0, length: RING }
  const nextKey = load.phase === 'first' ? () => keyCount++ : () => from + (sent++ % length)
  return send(load, load, nextKey)
}

async function send(
  { port, body, connections }: Pick<Load, 'port' | 'body' | 'connections'>,
  until: { readonly amount: number } | { readonly seconds: number },
  nextKey: () => number,
): Promise<Seen> {
  const head = headOf(port, body)
  const tookMs: number[] = []
  let succeeded = 0
  let left = 'amount' in until ? until.amount : Number.POSITIVE_INFINITY
  const startedAt = performance.now()
  const endsAt = 'seconds' in until ? startedAt + until.seconds * 1_000 : Number.POSITIVE_INFINITY
  const rest = stayAwake()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const { promise, resolve, reject } = withResolvers()
      const client = await Client.open(port, reject)
      const next = (): void => {
        const sentAt = performance.now()
        if (left-- <= 0 || sentAt >= endsAt) return void resolve()
        client.send(`${head}${KEY}: ${keyOf(nextKey())}\r\n\r\n${body}`, (status) => {
          tookMs.push(performance.now() - sentAt)
          if (status >= 200 && status < 300) succeeded++
          next()
        })
      }
      next()
      await promise
      client.end()
    }),
  )
  rest()
  const seconds = (performance.now() - startedAt) / 1_000
  const sorted = Float64Array.from(tookMs).sort()
  const [p50Ms, p99Ms] = [quantile(sorted, 0.5), quantile(sorted, 0.99)]
  return { succeeded, failed: tookMs.length - succeeded, seconds, p50Ms, p99Ms }
}

function headOf(port: number, body: string): string {
  const lines = [
    'POST /payouts HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    'connection: keep-alive',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    `${MERCHANT}: merchant_4f9a1c7e2b`,
  ]
  return `${lines.join('\r\n')}\r\n`
}

function withResolvers() {
  let resolve = (): void => {}
  let reject = (_error: Error): void => {}
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}

/** A client that falls asleep between answers has to be woken, and the server pays for that with each write. */
function stayAwake(): () => void {
  let isAwake = true
  const spin = () => void (isAwake && setImmediate(spin))
  spin()
  return () => {
    isAwake = false
  }
}

/** In the form of a UUID, as most clients send. Never used twice. */
function keyOf(count: number): string {
  return `0b6ff2c3-6f4e-4a52-9d6c-${count.toString(16).padStart(12, '0')}`
}

answerCalls({ prime, fire })
