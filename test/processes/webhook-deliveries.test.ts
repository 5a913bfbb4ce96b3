import { afterAll, beforeAll, expect, test } from 'vitest'
import { deliver, merchantUpdated } from '../support/deliveries.js'
import type { RawReply } from '../support/raw-client.js'
import { type BuiltReceiver, buildReceiver, type ReceiverProcess, type Run } from '../support/receiver-process.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'

const REPEATS = 100

let redis: RedisServer
let built: BuiltReceiver
let receivers: readonly [ReceiverProcess, ReceiverProcess]

beforeAll(async () => {
  ;[redis, built] = await Promise.all([startRedis(), buildReceiver()])
  receivers = await Promise.all([
    built.start({ library: 'ioredis', redisPort: redis.port }),
    built.start({ library: 'node-redis', redisPort: redis.port }),
  ])
}, 30_000)
afterAll(async () => {
  await built?.remove()
  await redis?.close()
})

test('100 repeats of each of 5 events at once, over two processes, run once each', async () => {
  const ids = Array.from({ length: 5 }, (_, index) => `crowd-${index}`)
  const crowds = await Promise.all(ids.map((id) => crowdOf(id)))

  for (const [index, id] of ids.entries()) {
    const ends = (crowds[index] ?? []).map(endOf)
    expect(ends).toHaveLength(REPEATS)
    expect(ends).toContain('200')
    for (const end of ends) expect(['200', '409 in_flight']).toContain(end)
    expect(await endsOfLaterRepeats(id)).toEqual(['200', '200'])
    expect(await runsOf(id)).toEqual([{ id, attempt: 1, previousOutcome: 'none', outcome: 'succeeded' }])
  }
}, 30_000)

test('100 repeats at once of an event whose handler throws first run again, and then once', async () => {
  const ids = Array.from({ length: 5 }, (_, index) => `throws-${index}`)
  const crowds = await Promise.all(ids.map((id) => crowdOf(id, 'throws first')))

  for (const [index, id] of ids.entries()) {
    const ends = (crowds[index] ?? []).map(endOf)
    expect(ends.filter((end) => end === '500 handler_failed')).toHaveLength(1)
    for (const end of ends) expect(['200', '409 in_flight', '500 handler_failed']).toContain(end)
    expect(await endsOfLaterRepeats(id, 'throws first')).toEqual(['200', '200'])
    expect(await runsOf(id)).toEqual([
      { id, attempt: 1, previousOutcome: 'none', outcome: 'threw' },
      { id, attempt: 2, previousOutcome: 'unknown', outcome: 'succeeded' },
    ])
  }
}, 30_000)

test('while one process handles an event, 100 repeats over both are told so; later ones are a success', async () => {
  const [owner] = receivers
  const original = deliver(owner.port, { body: event('waits', 'waits') })
  await owner.waits
  const ends = (await crowdOf('waits', 'waits')).map(endOf)
  expect(ends).toEqual(Array.from({ length: REPEATS }, () => '409 in_flight'))

  owner.wake()
  expect(endOf(await original)).toBe('200')
  expect(await endsOfLaterRepeats('waits', 'waits')).toEqual(['200', '200'])
  expect(await runsOf('waits')).toEqual([{ id: 'waits', attempt: 1, previousOutcome: 'none', outcome: 'succeeded' }])
}, 30_000)

function event(id: string, category?: string): object {
  return merchantUpdated({ id, payload: { id: 'mer_1', category } })
}

/** All at once, every other one to the other process. */
function crowdOf(id: string, category?: string): Promise<RawReply[]> {
  const ports = Array.from({ length: REPEATS }, (_, index) => receivers[index % 2 === 0 ? 0 : 1].port)
  return Promise.all(ports.map((port) => deliver(port, { body: event(id, category) })))
}

/** One in each process, one after the other. */
async function endsOfLaterRepeats(id: string, category?: string): Promise<string[]> {
  const ends: string[] = []
  for (const { port } of receivers) ends.push(endOf(await deliver(port, { body: event(id, category) })))
  return ends
}

function endOf(reply: RawReply): string {
  return reply.status === 200 ? '200' : `${reply.status} ${(reply.json() as { code: string }).code}`
}

/** Of both processes, in the order of their attempts. */
async function runsOf(id: string): Promise<Run[]> {
  const runs = (await Promise.all(receivers.map((receiver) => receiver.runs()))).flat()
  return runs.filter((run) => run.id === id).sort((a, b) => a.attempt - b.attempt)
}
