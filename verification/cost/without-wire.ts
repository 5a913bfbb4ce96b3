import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Send } from './service.js'

/** 200 bytes of JSON, as clients of the example send them. */
export const BODY = (() => {
  const beneficiary = { name: 'Ada Lovelace', iban: 'DE89370400440532013000' }
  const order = { amountMinor: 129_900, currency: 'EUR', beneficiary, reference: '' }
  return JSON.stringify({ ...order, reference: 'r'.repeat(200 - JSON.stringify(order).length) })
})()
const BYTES = Buffer.from(BODY)

/**
 * Node's own requests and responses, without a wire: in how many pieces a busy machine delivers what was sent would be counted,
 * too. One at a time.
 */
export function withoutWire(serve: RequestListener): Send {
  const socket = discarding()
  return (key, done) => {
    const req = requestWith(key, socket)
    const res = new ServerResponse(req)
    res.assignSocket(socket)
    res.once('finish', () => {
      res.detachSocket(socket)
      if (res.statusCode !== 201) throw new Error(`Answered ${res.statusCode}.`)
      setImmediate(done)
    })
    serve(req, res)
    req.complete = true
    req.push(BYTES)
    req.push(null)
  }
}

function requestWith(key: string | null, socket: Socket): IncomingMessage {
  const rawHeaders = ['Host', '127.0.0.1', 'Content-Type', 'application/json', 'Content-Length', `${BYTES.length}`]
  if (key !== null) rawHeaders.push('Idempotency-Key', key)
  const req = new IncomingMessage(socket)
  Object.assign(req, { method: 'POST', url: '/payouts', httpVersionMajor: 1, httpVersionMinor: 1, rawHeaders })
  for (let i = 0; i < rawHeaders.length; i += 2) {
    req.headers[(rawHeaders[i] as string).toLowerCase()] = rawHeaders[i + 1]
  }
  return req
}

function discarding(): Socket {
  const socket = new Socket()
  Object.defineProperty(socket, 'readable', { value: true }) // Otherwise body parsers take the request for read.
  socket.write = (_chunk: unknown, encoding?: unknown, callback?: unknown) => {
    const done = typeof encoding === 'function' ? encoding : callback
    if (typeof done === 'function') done()
    return true
  }
  return socket
}
