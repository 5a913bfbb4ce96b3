import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import express from 'express'
import type { IdempotencyRecord } from 'once-per-key/core'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { recordFeed } from '../../examples/payments/playground/record-feed.js'
import { readFeed } from './feed-reader.js'
import { expectRefusal } from './operations-table.js'
import { type Service, startService } from './payments-service.js'

const PATH = '/api/service/payout/create'
const BODY = { amount: 5_000, currency: 'EUR' }

let service: Service

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.stop())

test('it begins with the record as it stands', async () => {
  const key = randomUUID()
  const before = await readFeed(service.origin, key)
  expect(await before.next()).toEqual({ event: null, record: null })
  await service.send(PATH, { body: BODY, key })
  const after = await readFeed(service.origin, key)
  expect(await after.next()).toEqual({ event: null, record: { state: 'completed', attempt: 1, status: 201 } })
})

test('it tells each event of the key, with the record and what is left of its lease', async () => {
  const key = randomUUID()
  const feed = await readFeed(service.origin, key)
  const gate = service.hold()
  const first = service.send(PATH, { body: BODY, key })
  await gate.entered
  const claimed = await feed.nextEvent()
  expect(claimed).toMatchObject({
    event: { type: 'claimed', attempt: 1, previousOutcome: 'none' },
    record: { state: 'in-flight', attempt: 1, uncertain: false },
  })
  expect(claimed?.record?.leaseRemainingMs).toBeGreaterThan(0)
  await service.send(PATH, { body: BODY, key })
  expect((await feed.nextEvent())?.event?.type).toBe('in_flight')
  gate.open()
  await first
  expect(await feed.nextEvent()).toMatchObject({ event: { type: 'completed' }, record: { state: 'completed' } })
  await service.send(PATH, { body: BODY, key })
  expect((await feed.nextEvent())?.event?.type).toBe('replayed')
})

test('it tells the lease again and again, without any event', async () => {
  const key = randomUUID()
  const feed = await readFeed(service.origin, key)
  const gate = service.hold()
  const first = service.send(PATH, { body: BODY, key })
  const claimed = await feed.nextEvent()
  const later = await feed.next()
  gate.open()
  await first
  expect(later?.event).toBeNull()
  expect(later?.record?.leaseRemainingMs).toBeLessThan(claimed?.record?.leaseRemainingMs as number)
})

test('it holds no token, no body and no other key', async () => {
  const key = randomUUID()
  const feed = await readFeed(service.origin, key)
  await service.send(PATH, { body: BODY, key: randomUUID() })
  await service.send(PATH, { body: { ...BODY, reference: 'private' }, key })
  const messages = [await feed.nextEvent(), await feed.nextEvent()]
  expect(messages.map((message) => message?.event)).toEqual([
    { type: 'claimed', scope: 'mer_acme', key, attempt: 1, previousOutcome: 'none', because: 'new' },
    { type: 'completed', scope: 'mer_acme', key, attempt: 1, status: 201, answerKept: true },
  ])
  expect(JSON.stringify(messages)).not.toContain('private')
})

test("a merchant hears nothing of another's key, although it is the same", async () => {
  const key = randomUUID()
  const ours = await readFeed(service.origin, key)
  const theirs = await readFeed(service.origin, key, 'demo_globex')
  await service.send(PATH, { body: BODY, key })
  expect((await ours.nextEvent())?.event?.type).toBe('claimed')
  await service.send(PATH, { body: BODY, key, apiKey: 'demo_globex' })
  expect((await theirs.nextEvent())?.event).toMatchObject({ type: 'claimed', scope: 'mer_globex' })
})

test('it is a stream of events that nobody keeps', async () => {
  const { response } = await readFeed(service.origin, randomUUID())
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  expect(response.headers.get('cache-control')).toBe('no-store')
})

test.each([
  ['without an API key', { method: 'GET', apiKey: '' }, '?key=a', 'unauthenticated', 401],
  ['without a key', { method: 'GET' }, '', 'key_invalid', 400],
  ['with two keys', { method: 'GET' }, '?key=a&key=b', 'key_invalid', 400],
  ['with a key that is too long', { method: 'GET' }, `?key=${'a'.repeat(256)}`, 'key_invalid', 400],
  ['with a control character', { method: 'GET' }, '?key=a%0A', 'key_invalid', 400],
  ['by POST', {}, '?key=a', 'method_not_allowed', 405],
] as const)('%s it is refused', async (_how, sent, query, code, status) => {
  expectRefusal(await service.send(`/demo/feed${query}`, sent), code, status)
})

test('a key has 255 characters at most, however they are encoded', async () => {
  const key = '😀'.repeat(255)
  const feed = await readFeed(service.origin, key)
  expect(await feed.next()).toEqual({ event: null, record: null })
  await service.send(PATH, { body: BODY, key: Buffer.from(key).toString('latin1') })
  expect((await feed.nextEvent())?.event?.type).toBe('claimed')
})

test('a HEAD is refused, since it would never end', async () => {
  const { status, headers } = await service.send('/demo/feed?key=a', { method: 'HEAD' })
  expect([status, headers.get('allow')]).toEqual([405, 'GET'])
})

test('there are 64 at most, and one that is left makes room', async () => {
  const crowded = await startService()
  onTestFinished(() => crowded.stop())
  const feeds = await Promise.all(Array.from({ length: 64 }, () => readFeed(crowded.origin, 'a')))
  const refused = await crowded.send('/demo/feed?key=a', { method: 'GET' })
  expectRefusal(refused, 'feed_unavailable', 503)
  feeds[0]?.leave()
  const next = await vi.waitFor(async () => {
    const feed = await readFeed(crowded.origin, 'a')
    expect(feed.response.status).toBe(200)
    return feed
  })
  expect(await next.next()).toEqual({ event: null, record: null })
})

test('closing ends all feeds, and opens no more', async () => {
  const closing = await startService()
  onTestFinished(() => closing.stop())
  const feed = await readFeed(closing.origin, 'a')
  await feed.next()
  closing.close()
  expect(await feed.next()).toBeNull()
  expectRefusal(await closing.send('/demo/feed?key=a', { method: 'GET' }), 'feed_unavailable', 503)
})

test('a store that does not answer is told as such, and the feed goes on', async () => {
  let isAway = true
  const inspect = async (): Promise<IdempotencyRecord | null> => {
    if (isAway) throw new Error('away')
    return null
  }
  const { origin, feed } = await serveFeed(inspect)
  const reader = await readFeed(origin, 'a')
  expect(await reader.next()).toEqual({ event: null })
  const error = { name: 'Error', message: 'connect 10.0.0.1' }
  feed.hear({ type: 'store_failed', scope: 'mer_acme', key: 'a', command: 'renew', error })
  expect(await reader.next()).toEqual({
    event: { type: 'store_failed', scope: 'mer_acme', key: 'a', command: 'renew' },
  })
  // Its own look is no news, which would need another look.
  feed.hear({ type: 'store_failed', scope: 'mer_acme', key: 'a', command: 'inspect', error })
  isAway = false
  feed.hear({ type: 'in_flight', scope: 'mer_acme', key: 'a' })
  expect(await reader.nextEvent()).toMatchObject({ event: { type: 'in_flight' }, record: null })
})

test('a reader that reads nothing is cut off, whatever happens to its key', async () => {
  const { origin, feed } = await serveFeed(async () => null)
  const socket = connect(Number(new URL(origin).port), '127.0.0.1').pause()
  socket.write('GET /?key=a HTTP/1.1\r\nHost: x\r\n\r\n')
  const closed = once(socket, 'close')
  socket.on('error', () => {})
  for (let isCut = false; !isCut; ) {
    for (let i = 0; i < 200; i++) feed.hear({ type: 'in_flight', scope: 'mer_acme', key: 'a' })
    isCut = await Promise.race([
      new Promise<false>((resolve) => setImmediate(() => resolve(false))),
      feed.whenEmpty.then(() => true),
    ])
  }
  socket.resume()
  await closed
})

/** The feed alone, for Acme. */
async function serveFeed(inspect: () => Promise<IdempotencyRecord | null>) {
  const feed = recordFeed(inspect)
  let empty = () => {}
  const whenEmpty = new Promise<void>((resolve) => {
    empty = resolve
  })
  const app = express().get('/{*path}', (req, res, next) => {
    req.merchant = { id: 'mer_acme', name: 'Acme' }
    res.once('close', empty)
    return feed.open(req, res, next)
  })
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    feed.close()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { origin: `http://127.0.0.1:${port}`, feed: { ...feed, whenEmpty } }
}
