// The load generator, in a process of its own: autocannon, and what each response took.
import { answerCalls } from './calls.js'
import type { Load, Seen } from './generator.js'
import { loadPeer } from './peer-packages.js'
import { KEY, MERCHANT } from './protection.js'
import { quantile } from './statistics.js'

type Autocannon = (options: Readonly<Record<string, unknown>>) => PromiseLike<Totals> & {
  on(event: 'response', listener: (client: unknown, status: number, bytes: number, ms: number) => void): void
}

interface Totals {
  readonly '2xx': number
  readonly non2xx: number
  readonly errors: number
  readonly duration: number
}

const autocannon = loadPeer<Autocannon>('autocannon')

/** How many answers a replay chooses from. */
const RING = 200

let keyCount = 0
let ringFrom = 0

/** Sends as many requests as the ring has keys, once each, so that each has its answer. */
async function prime({ port, body }: Pick<Load, 'port' | 'body'>): Promise<Seen> {
  ringFrom = keyCount
  return send({ port, body, connections: 8 }, { amount: RING }, () => keyCount++)
}

function fire(load: Load): Promise<Seen> {
  let sent = 0
  const nextKey = load.phase === 'first' ? () => keyCount++ : () => ringFrom + (sent++ % RING)
  const until = 'amount' in load ? { amount: load.amount } : { duration: load.seconds }
  return send(load, until, nextKey)
}

async function send(
  { port, body, connections }: Pick<Load, 'port' | 'body' | 'connections'>,
  until: { amount: number } | { duration: number },
  nextKey: () => number,
): Promise<Seen> {
  const headers = { 'content-type': 'application/json', [MERCHANT]: 'merchant_4f9a1c7e2b' }
  const instance = autocannon({
    url: `http://127.0.0.1:${port}/payouts`,
    method: 'POST',
    connections,
    ...until,
    sampleInt: 20,
    requests: [
      {
        body,
        headers,
        setupRequest(request: { headers: Record<string, string> }) {
          request.headers = { ...headers, [KEY]: keyOf(nextKey()) }
          return request
        },
      },
    ],
  })
  const tookMs: number[] = []
  const startedAt = performance.now()
  let lastAt = startedAt
  instance.on('response', (_client, _status, _bytes, ms) => {
    tookMs.push(ms)
    lastAt = performance.now()
  })
  const { '2xx': succeeded, non2xx, errors } = await instance
  const sorted = Float64Array.from(tookMs).sort()
  return {
    succeeded,
    failed: non2xx + errors,
    seconds: (lastAt - startedAt) / 1_000,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
  }
}

/** In the form of a UUID, as most clients send. Never used twice. */
function keyOf(count: number): string {
  return `0b6ff2c3-6f4e-4a52-9d6c-${count.toString(16).padStart(12, '0')}`
}

answerCalls({ prime, fire })
