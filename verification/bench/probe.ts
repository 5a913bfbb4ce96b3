import { orderOf } from './payout.js'
import { KEY, MERCHANT } from './protection.js'
import type { Service } from './service.js'
import type { StoppedOwner } from './stopped-owners.js'

/** One service, and what a client of it can do. */
export interface Probe {
  readonly service: Service
  /** What became of a key whose owner stood still; absent where the store is the owner's own memory. */
  readonly stopped?: StoppedOwner | undefined
  /** Sends an order, as one merchant with one key unless told otherwise. */
  pay(key: string, options?: PayOptions): Promise<Reply>
  /** How often the work is done in the meantime. */
  runsDuring(steps: () => Promise<unknown>): Promise<number>
  pauseRedis(): void
  resumeRedis(): void
}

interface PayOptions {
  /** After which the client hangs up, and `pay` is rejected. */
  readonly timeoutMs?: number
  readonly amountMinor?: number
  readonly merchant?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Reply {
  readonly status: number
  readonly location: string | null
  readonly contentType: string | null
  readonly text: string
}

export function probeOf(
  service: Service,
  stopped: StoppedOwner | undefined,
  redisSignal: (signal: NodeJS.Signals) => void,
): Probe {
  return {
    service,
    stopped,
    pay: (key, options) => pay(service.port, key, options),
    async runsDuring(steps) {
      await service.call('begin')
      await steps()
      return (await service.call('end')).runs
    },
    pauseRedis: () => redisSignal('SIGSTOP'),
    resumeRedis: () => redisSignal('SIGCONT'),
  }
}

export async function pay(
  port: number,
  key: string,
  { amountMinor, merchant = 'merchant_one', headers, timeoutMs = 5_000 }: PayOptions = {},
): Promise<Reply> {
  const response = await fetch(`http://127.0.0.1:${port}/payouts`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', [KEY]: `probe-${key}`, [MERCHANT]: merchant, ...headers },
    body: orderOf(200, amountMinor),
    signal: AbortSignal.timeout(timeoutMs),
  })
  const { status, headers: answered } = response
  const text = await response.text()
  return { status, location: answered.get('location'), contentType: answered.get('content-type'), text }
}
