import { Buffer } from 'node:buffer'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Writable } from 'node:stream'
import { idempotency, type Middleware } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

// Serverless platforms give a response a socket of their own, which reads all text as UTF-8. Bodies that were sent as
// Latin-1 text, to spare a write, came out of it with other bytes.

const BODIES = {
  ascii: Buffer.from('{"id":"po_1"}'),
  'UTF-8': Buffer.from('{"name":"Zoë €"}'),
  binary: Buffer.from([0, 0x7f, 0x80, 0xff, 0x0a]),
}

test.each(Object.entries(BODIES))('a body in %s comes out of such a socket as it was written', async (_name, body) => {
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme' })
  expect(await sent(once, body)).toEqual(body)
  expect(await sent(once, Buffer.from('never run'))).toEqual(body)
})

async function sent(once: Middleware, body: Buffer): Promise<Buffer> {
  const req = Object.assign(new IncomingMessage(new Socket()), {
    method: 'POST',
    url: '/payouts',
    headers: { 'idempotency-key': 'order-1001' },
  })
  const res = new ServerResponse(req)
  const pieces: Buffer[] = []
  const socket = new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      pieces.push(typeof chunk === 'string' ? Buffer.from(chunk, 'utf8') : chunk)
      done()
    },
  })
  res.assignSocket(socket as Socket)
  await new Promise((resolve, reject) => {
    res.on('finish', resolve)
    once(req, res, (error) => (error === undefined ? res.end(body) : reject(error)))
  })
  const all = Buffer.concat(pieces)
  return all.subarray(all.indexOf('\r\n\r\n') + 4)
}
