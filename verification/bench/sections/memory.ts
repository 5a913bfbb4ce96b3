import { Agent, request } from 'node:http'
import { orderOf, WAIT_MS } from '../payout.js'
import { KEY, MERCHANT } from '../protection.js'
import type { Ground } from '../rounds.js'
import type { Service } from '../service.js'
import type { Services } from '../services.js'
import { spreadOf } from '../statistics.js'
import { countCell, type Table } from '../table.js'
import { variantOf } from '../variants.js'

const RECORDS = 10_000
const IN_FLIGHT = 500
const KIB = 1_024

/** What is kept for a completed record of 1 KiB, and for a request that waits for its handler. */
export async function memoryTable(services: Services, ground: Ground): Promise<Table> {
  const rows: string[][] = []
  for (const name of ['floor-memory', 'ours-memory', '@node-idempotency/core-memory']) {
    const values = await inRounds(`memory: records, ${name}`, ground, async () =>
      bytesARecord(await services.of(name), ground),
    )
    rows.push(['a completed record, answer of 1 KiB', variantOf(name).label, ...values])
  }
  for (const name of ['floor-ioredis', 'ours-ioredis', ...REDIS_PEERS]) {
    const service = await services.of(name)
    const values = await inRounds(`memory: records, ${name}`, ground, () => bytesInRedis(service, ground))
    rows.push(['a completed record, answer of 1 KiB', variantOf(name).label, ...values])
  }
  for (const name of ['bare', 'floor-memory', 'ours-memory', 'ours-ioredis']) {
    const values = await inRounds(`memory: in flight, ${name}`, ground, async () =>
      bytesInFlight(await services.of(name)),
    )
    rows.push(['a request whose handler waits', variantOf(name).label, ...values])
  }
  return {
    title: 'Memory',
    columns: ['bytes for', '', 'median', 'least', 'most'],
    rows,
    notes: [
      `In the server: heap and buffers after a full collection, over ${countCell(RECORDS)} records, ` +
        `or ${IN_FLIGHT} requests in flight with their connections.`,
      'In Redis: used_memory over the same records.',
    ],
  }
}

const REDIS_PEERS = [
  'express-idempotency-redis',
  '@node-idempotency/core-redis',
  '@aws-lambda-powertools/idempotency-redis',
]

async function inRounds(what: string, ground: Ground, measure: () => Promise<number>): Promise<string[]> {
  ground.tell(what)
  const values: number[] = []
  for (let round = 0; round < Math.min(ground.rounds, 3); round++) values.push(await measure())
  const { median, least, most } = spreadOf(values)
  return [median, least, most].map(countCell)
}

async function bytesARecord(service: Service, { generator }: Ground): Promise<number> {
  await service.call('reset', { phase: 'first', answerBytes: KIB })
  await complete(service, generator, 500)
  const before = await service.call('memory')
  await complete(service, generator, RECORDS)
  return ((await service.call('memory')) - before) / RECORDS
}

async function bytesInRedis(service: Service, { generator, redis }: Ground): Promise<number> {
  await redis.flushall()
  await service.call('reset', { phase: 'first', answerBytes: KIB })
  await complete(service, generator, 500)
  const used = async () => Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
  const before = await used()
  await complete(service, generator, RECORDS)
  return ((await used()) - before) / RECORDS
}

async function complete(service: Service, generator: Ground['generator'], amount: number): Promise<void> {
  const load = { port: service.port, body: orderOf(200), connections: 16, phase: 'first' as const, amount }
  const { succeeded } = await generator.call('fire', load)
  if (succeeded !== amount) throw new Error(`${service.variant.label} answered ${succeeded} of ${amount}.`)
}

async function bytesInFlight(service: Service): Promise<number> {
  await service.call('reset', { phase: 'first', answerBytes: KIB })
  const before = await service.call('memory')
  await service.call('begin')
  const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY })
  for (let i = 0; i < IN_FLIGHT; i++) wait(service.port, agent, `in-flight-${Date.now()}-${i}`)
  while ((await service.call('end')).runs < IN_FLIGHT) await new Promise((resolve) => setTimeout(resolve, 20))
  const after = await service.call('memory')
  agent.destroy()
  // Their handlers end by themselves.
  await new Promise((resolve) => setTimeout(resolve, WAITS_MS))
  return (after - before) / IN_FLIGHT
}

const WAITS_MS = 2_000

function wait(port: number, agent: Agent, key: string): void {
  const headers = {
    'content-type': 'application/json',
    [KEY]: key,
    [MERCHANT]: 'merchant_one',
    [WAIT_MS]: `${WAITS_MS}`,
  }
  const sent = request({ port, host: '127.0.0.1', method: 'POST', path: '/payouts', agent, headers })
  sent.on('error', () => {}) // It is hung up on.
  sent.end(orderOf(200))
}
