import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { readRawBody } from '../../src/webhooks/receiver/delivery/raw-body.js'

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

test('a stream that is read keeps no listener of the reader', async () => {
  const req = request()
  const reading = readRawBody(req, 10)
  req.end('abc')
  expect(await reading).toEqual({ kind: 'whole', bytes: Buffer.from('abc') })
  expect([req.listenerCount('data'), req.listenerCount('close'), req.listenerCount('error')]).toEqual([0, 0, 0])
})
