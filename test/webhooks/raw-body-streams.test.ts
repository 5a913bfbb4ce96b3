import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { readRawBody } from '../../src/webhooks/receiver/delivery/delivery.js'
import { footprint } from '../../verification/proof/soak/footprint.js'

/** A request whose end is the test's to choose. */
function request(headers: IncomingMessage['headers'] = {}): PassThrough & IncomingMessage {
  const socket = { destroy: () => {} }
  return Object.assign(new PassThrough(), { headers, socket }) as unknown as PassThrough & IncomingMessage
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test.each([
  { name: 'is destroyed', destroy: (req: PassThrough) => req.destroy() },
  { name: 'is destroyed with an error', destroy: (req: PassThrough) => req.destroy(new Error('reset')) },
  { name: 'only reports an error', destroy: (req: PassThrough) => req.emit('error', new Error('reset')) },
])('a stream that $name in the middle is abandoned', async ({ destroy }) => {
  const req = request()
  const reading = readRawBody(req, 10)
  req.write('abc')
  await nextTurn()
  destroy(req)
  expect(await reading).toEqual({ kind: 'abandoned' })
})

test('a stream that was destroyed before is abandoned at once', async () => {
  const req = request()
  req.destroy()
  await nextTurn()
  expect(await readRawBody(req, 10)).toEqual({ kind: 'abandoned' })
})

test.each([
  { name: 'by its length', headers: { 'content-length': '11' } },
  { name: 'by what came', headers: {} },
])('a stream that fails after it was too large $name does no harm', async ({ headers }) => {
  const req = request(headers)
  const reading = readRawBody(req, 10)
  req.write(Buffer.alloc(11))
  expect(await reading).toEqual({ kind: 'too_large' })
  req.destroy(new Error('reset'))
  await nextTurn()
})

test.each([
  { name: 'is read', headers: {}, body: 'abc', kind: 'whole' },
  {
    name: 'that is too large is discarded',
    headers: { 'content-length': '11' },
    body: 'abcdefghijk',
    kind: 'too_large',
  },
])('a stream that middleware has paused, to wait for something, $name', async (about) => {
  const req = request(about.headers)
  req.pause()
  const ended = once(req, 'end')
  const reading = readRawBody(req, 10)
  req.end(about.body)
  expect(await reading).toMatchObject({ kind: about.kind })
  await ended
})

test('a stream that is read keeps no listener of the reader', async () => {
  const req = request()
  const reading = readRawBody(req, 10)
  req.end('abc')
  expect(await reading).toEqual({ kind: 'whole', bytes: Buffer.from('abc') })
  expect([req.listenerCount('data'), req.listenerCount('close'), req.listenerCount('error')]).toEqual([0, 0, 0])
})

// An array of as many Buffers took 92 MB: anybody could send a body of 300 KB that filled a process, before its signature was checked.
test('a body in pieces of one byte takes about the memory of its bytes', { timeout: 30_000 }, async () => {
  const sent = Buffer.alloc(300_000, 'ab')
  const req = request()
  const reading = readRawBody(req, sent.byteLength)
  const before = await footprint()
  for (let i = 0; i < sent.byteLength; i++) {
    req.write(sent.subarray(i, i + 1))
    if (i % 1_000 === 0) await nextTurn()
  }
  await nextTurn()
  expect((await footprint()) - before).toBeLessThan(10 * sent.byteLength)
  req.end()
  const body = await reading
  expect(body.kind === 'whole' && sent.equals(body.bytes)).toBe(true)
})

test('a body of several pieces is as long as it may be, and not a byte longer', async () => {
  for (const [more, kind] of [
    [0, 'whole'],
    [1, 'too_large'],
  ] as const) {
    const req = request()
    const reading = readRawBody(req, 10)
    req.write(Buffer.alloc(7))
    req.end(Buffer.alloc(3 + more))
    expect((await reading).kind).toBe(kind)
  }
})
