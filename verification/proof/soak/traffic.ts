import { fakeClock } from '../../../test/support/fake-clock.js'
import type { Findings } from '../layer.js'
import { ownPulse } from '../limits/pulse.js'
import { type Asked, type Client, clientOf } from './clients.js'
import { countTimers, type Gauges, read } from './gauges.js'
import { type Random, randomFrom } from './random.js'
import { type Service, startService } from './service.js'

export interface Trafficked {
  readonly requests: number
  readonly asked: Asked
  /** How many bytes more are held after the second half than after the first. */
  readonly grownBytes: number
}

const CLIENTS = 12
const WARM_UP_REQUESTS = 2_000
const IDLE_BEATS = 200
/** What compiled code and the like may take meanwhile; a timer that stays for each request takes far more. */
const GROWTH_BYTES = 1_048_576

/** So many real requests to a real server. What they hold at the end is what they held after the first half. */
export async function traffic(
  requests: number,
  findings: Findings,
  random: Random,
  progress: (share: number) => void,
): Promise<Trafficked> {
  const clock = fakeClock()
  const timers = countTimers()
  const service = await startService(clock.now)
  const warnings: string[] = []
  let idleBeats = IDLE_BEATS
  const warn = (warning: Error) => void warnings.push(String(warning))
  process.on('warning', warn)
  const clients = Array.from({ length: CLIENTS }, () => {
    return clientOf(service, clock, findings, randomFrom(random.below(2 ** 31)))
  })
  const done = () => clients.reduce((sum, client) => sum + client.requests(), 0)

  try {
    await untilRequests(WARM_UP_REQUESTS)
    const start = done()
    const first = await settled()
    await untilRequests(start + requests / 2)
    const middle = await settled(first.handles)
    await untilRequests(start + requests)
    const last = await settled(first.handles)
    compare(first, middle, last)
    findings.expect('S12', warnings.length === 0, () => `Node warned: ${warnings[0]}`)
    return { requests: done() - start, asked: total(clients), grownBytes: last.bytes - middle.bytes }
  } finally {
    process.off('warning', warn)
    timers.restore()
    for (const client of clients) client.leave()
    await service.close()
  }

  async function untilRequests(end: number): Promise<void> {
    await Promise.all(clients.map((client) => askUntil(client, end)))
  }

  async function askUntil(client: Client, end: number): Promise<void> {
    try {
      while (done() < end) {
        await client.step()
        progress(Math.min(1, done() / (WARM_UP_REQUESTS + requests)))
      }
    } catch (error) {
      findings.expect('L2', false, () => `a client that waited for the service gave up: ${error}`)
      client.leave()
    }
  }

  /** Records are not what is looked for: they are forgotten. */
  async function settled(handlesBefore?: number): Promise<Gauges> {
    const idle = await ownPulse.within(idleBeats, service.once.idle()).then(
      () => true,
      () => false,
    )
    if (!idle) idleBeats = 1 // It never will be.
    findings.expect('L3', idle, () => `idle() does not resolve after ${done()} requests, although all were answered`)
    service.store.clear()
    for (const client of clients) client.forget()
    return read(service, timers, handlesBefore)
  }

  function compare(first: Gauges, middle: Gauges, last: Gauges): void {
    const grown = last.bytes - middle.bytes
    findings.expect('S12', grown < GROWTH_BYTES, () => `the second ${requests / 2} requests left ${grown} bytes behind`)
    findings.expect(
      'S12',
      last.timers === 0,
      () => `${last.timers} timers are still set when all requests are answered`,
    )
    for (const gauge of ['listeners', 'handles'] as const) {
      const holds = last[gauge] <= first[gauge]
      findings.expect(gauge === 'handles' ? 'L3' : 'S12', holds, () => {
        return `${requests} requests left ${gauge} behind: ${first[gauge]}, ${middle[gauge]} half-way, ${last[gauge]} at the end`
      })
    }
  }
}

/** A few of everything, on a service that is then closed: for a process that must end by itself. */
export async function briefTraffic(service: Service, findings: Findings): Promise<void> {
  const client = clientOf(service, fakeClock(), findings, randomFrom(1))
  while (client.requests() < 300) await client.step()
  client.leave()
}

function total(clients: readonly Client[]): Asked {
  const sum = { ...(clients[0] as Client).asked }
  for (const { asked } of clients.slice(1)) {
    for (const name of Object.keys(sum) as (keyof Asked)[]) sum[name] += asked[name]
  }
  return sum
}
