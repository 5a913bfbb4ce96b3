import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type ErrorStep, type Step } from '../support/bindings.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// Where sending threw, the request kept the view of its socket, which no longer hung up: a client waited for good. And
// `destroy(error)` went past the view: after the end it took the client's answer away, before it the key stayed in flight.

const hangUp: ErrorStep = (error, req, _res, _next) => {
  req.on('error', () => {})
  req.socket.destroy(error)
}

describe.each(BINDINGS)('$name', (binding) => {
  test('an error page that hangs up ends the connection where the head was out', async () => {
    const handler: Step = (_req, res) => {
      res.strictContentLength = true
      res.setHeader('Content-Length', '10')
      res.end('12345')
    }
    const { port } = await serve(binding, handler, { onError: (_error, req, _res, _next) => req.socket.destroy() })
    const client = connectTo(port)
    client.send({ key: 'k' })
    await client.closed
  })

  test('a request has its own socket where a hook on the head looks at it, and where one throws', async () => {
    const seen: boolean[] = []
    const before: Step = (req, res, next) => {
      const socket: Socket = req.socket
      const { writeHead } = res
      res.writeHead = (...args: Parameters<typeof writeHead>) => {
        seen.push(req.socket === socket)
        if (res.statusCode === 201) throw new Error('a hook')
        return writeHead.apply(res, args)
      }
      res.on('finish', () => seen.push(req.socket === socket))
      next()
    }
    const handler: Step = (_req, res) => {
      res.statusCode = 201
      res.end('paid')
    }
    const onError: ErrorStep = (_error, _req, res, _next) => {
      res.statusCode = 500
      res.end('sorry')
    }
    const { port } = await serve(binding, handler, { before: [before], onError })
    expect((await request(port, { key: 'k' })).status).toBe(500)
    expect(seen).toEqual([true, true, true])
  })

  test('hanging up with an error after the end takes no answer away', async () => {
    const handler: Step = (_req, res, next) => {
      res.end('paid')
      next(new Error('late'))
    }
    const { port } = await serve(binding, handler, { onError: hangUp })
    expect((await request(port, { key: 'k' })).body.toString()).toBe('paid')
  })

  test('hanging up with an error before the end is a failure', async () => {
    let isFirst = true
    const handler: Step = (_req, res, next) => {
      if (!isFirst) return void res.end('paid')
      isFirst = false
      res.write('half')
      next(new Error('oops'))
    }
    const { port, seen } = await serve(binding, handler, { onError: hangUp })
    const client = connectTo(port)
    client.send({ key: 'k' })
    await client.closed
    await seen('failed')
    expect((await request(port, { key: 'k' })).body.toString()).toBe('paid')
  })
})
