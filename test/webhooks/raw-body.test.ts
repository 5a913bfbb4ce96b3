import { Buffer } from 'node:buffer'
import { createHmac } from 'node:crypto'
import type http from 'node:http'
import express from 'express'
import express4 from 'express4'
import { hmacSha256 } from 'once-per-key/webhooks'
import { describe, expect, test } from 'vitest'
import { keepsBytes } from '../../examples/recipes/webhooks/keeps-bytes.js'
import { BINDINGS, type Step } from '../support/bindings.js'
import { begin, deliver, deliveryBytes, merchantUpdated, receive } from '../support/deliveries.js'
import { failingStore } from '../support/failing-store.js'
import { gate } from '../support/gate.js'
import { connectTo } from '../support/raw-client.js'

const raw = `${JSON.stringify(merchantUpdated())}  `
const SIGNED = {
  headers: { 'X-Signature': createHmac('sha256', 'secret').update(raw).digest('hex') },
  body: raw,
}
const options = { verify: hmacSha256({ header: 'x-signature', secrets: ['secret'] }) }
const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

const keepRaw = (req: http.IncomingMessage, _res: unknown, buf: Buffer) => {
  Object.assign(req, { rawBody: buf })
}
const drain: Step = (req, _res, next) => {
  req.resume().once('end', () => next())
}

const KEPT: readonly { name: string; step: Step }[] = [
  { name: 'nobody', step: (_req, _res, next) => next() },
  { name: 'the express.json() that the page shows', step: keepsBytes as Step },
  { name: 'the express.json() of Express 4 that keeps them', step: express4.json({ verify: keepRaw }) as Step },
  { name: 'express.raw()', step: express.raw({ type: '*/*' }) as Step },
  {
    name: 'somebody who keeps a string',
    step: (req, _res, next) =>
      drain(req, _res, () => {
        req.rawBody = raw
        next()
      }),
  },
]

describe.each(BINDINGS)('on $name', (binding) => {
  test.each(KEPT)('the bytes are found where the stream was read by $name', async ({ step }) => {
    const { port, handled } = await receive(binding, { options, before: [step] })
    expect((await deliver(port, SIGNED)).status).toBe(200)
    expect(handled).toHaveLength(1)
  })

  test.each([
    { name: 'express.json()', step: express.json() as Step },
    { name: 'the express.json() of Express 4', step: express4.json() as Step },
    { name: 'express.text()', step: express.text({ type: '*/*' }) as Step },
    { name: 'somebody who drops it', step: drain },
  ])('a stream that was read by $name is misuse, which shows the line to add', async ({ step }) => {
    const store = failingStore()
    const { port, handled, errors } = await receive(binding, { options: { ...options, store }, before: [step] })
    expect((await deliver(port, SIGNED)).body.toString()).toBe('the application')
    expect(errors).toEqual([
      expect.objectContaining({
        code: 'raw_body_consumed',
        message: expect.stringContaining(
          'express.json({ verify: (req, _res, bytes) => Object.assign(req, { rawBody: bytes }) })',
        ),
      }),
    ])
    expect({ handled, sent: store.sent }).toEqual({ handled: [], sent: [] })
  })

  test('an upload that comes byte by byte, and after a pause of the application, is read in full', async () => {
    const { port, handled } = await receive(binding, { options, before: [(_q, _s, next) => setImmediate(next)] })
    const connection = connectTo(port)
    connection.socket.setNoDelay(true)
    for (const byte of deliveryBytes(SIGNED)) {
      connection.socket.write(Buffer.of(byte))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect((await connection.reply()).status).toBe(200)
    connection.socket.destroy()
    expect(handled).toHaveLength(1)
  })

  test.each([
    { name: 'with a length', headers: {} },
    { name: 'in chunks', headers: { 'Content-Length': '', 'Transfer-Encoding': 'chunked' } },
  ])('a client that leaves in the middle of an upload $name: nothing runs, nothing is stored', async ({ headers }) => {
    const store = failingStore()
    const arrived = gate<http.IncomingMessage>()
    const before: Step[] = [
      (req, _res, next) => {
        arrived.open(req)
        next()
      },
    ]
    const { port, handled, errors, receiver, events } = await receive(binding, { options: { store }, before })
    const connection = connectTo(port)
    connection.socket.write(deliveryBytes({ headers: { 'Content-Length': '500', ...headers }, body: '5\r\n{"id"' }))
    const req = await arrived.opened
    const closed = new Promise((resolve) => req.once('close', resolve))
    connection.socket.destroy()
    await closed
    await receiver.idle()
    expect({ handled, errors, events, sent: store.sent }).toEqual({ handled: [], errors: [], events: [], sent: [] })
    expect((await deliver(port)).status).toBe(200)
  })
})

test('a client that has left before the receiver looks: nothing runs, and nothing hangs', async () => {
  let asked = 0
  const left: Step = (req, _res, next) => {
    req.once('close', () => {
      asked++
      next()
    })
    req.socket.destroy()
  }
  const { port, handled, errors, receiver, events } = await receive(express5, { before: [left] })
  const connection = begin(port, { headers: { 'Content-Length': '500' } })
  await connection.closed
  await expect.poll(() => asked).toBe(1)
  await receiver.idle()
  expect({ handled, errors, events }).toEqual({ handled: [], errors: [], events: [] })
})

test('a body of no bytes that somebody has read to its end is empty, and nothing hangs', async () => {
  const { port, errors } = await receive(express5, { before: [drain] })
  expect((await deliver(port, { body: '' })).status).toBe(400)
  expect(errors).toEqual([])
})

describe('a body that is too large', () => {
  const LIMIT = { maxBodyBytes: 1_000 }
  const chunk = Buffer.from(`${(60_000).toString(16)}\r\n${'a'.repeat(60_000)}\r\n`)

  test('in req.rawBody is refused too', async () => {
    const before = [express.json({ verify: keepRaw }) as Step]
    const { port } = await receive(express5, { options: { maxBodyBytes: 20 }, before })
    expect((await deliver(port)).status).toBe(413)
  })

  test('is refused by its length, before it is sent', async () => {
    const { port } = await receive(express5, { options: LIMIT })
    const connection = begin(port, { headers: { 'Content-Length': '1001' }, body: '' })
    expect((await connection.reply()).status).toBe(413)
  })

  test('leaves the connection usable, once it has been sent', async () => {
    const { port } = await receive(express5, { options: LIMIT })
    const connection = begin(port, { body: ' '.repeat(300_000) })
    expect((await connection.reply()).status).toBe(413)
    connection.socket.write(deliveryBytes())
    expect((await connection.reply()).status).toBe(200)
  })

  test('that never ends is answered, then cut off', async () => {
    const { port, server } = await receive(express5, { options: LIMIT })
    let received = 0
    server.once('connection', (socket) => {
      socket.once('close', () => {
        received = socket.bytesRead
      })
    })
    const headers = { 'Content-Length': '', 'Transfer-Encoding': 'chunked' }
    const connection = begin(port, { headers, body: '' })
    const upload = () => {
      while (!connection.socket.destroyed && connection.socket.write(chunk)) {}
    }
    connection.socket.on('drain', upload)
    upload()
    expect((await connection.reply()).status).toBe(413)
    await connection.closed
    await expect.poll(() => received).toBeGreaterThan(1_048_576)
    expect(received).toBeLessThan(4 * 1_048_576)
  })
})
