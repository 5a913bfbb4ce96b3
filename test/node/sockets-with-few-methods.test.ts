import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { idempotency, type Middleware } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

// Serverless adapters give a response a socket with only the methods that Node and on-finished call. Whoever watched it behind the
// middleware, such as `res.sendFile` or a logger, and then called its `removeListener`, met an `off` that such a socket lacks: an
// exception in 'finish', behind which the adapter waited until the function's time limit.

const once = idempotency({ store: new MemoryStore(), scope: () => 'acme' })

test('whoever watches such a socket stops without an error, and the adapter hears of the end', async () => {
  expect(await sent(once)).toEqual(['watcher stops', 'adapter hears'])
})

function sent(middleware: Middleware): Promise<string[]> {
  const req = Object.assign(new IncomingMessage(new Socket()), {
    method: 'POST',
    url: '/payouts',
    headers: { 'idempotency-key': 'order-1001' },
  })
  const res = new ServerResponse(req)
  res.assignSocket(socketOfAdapter() as Socket)
  return new Promise((resolve, reject) => {
    const order: string[] = []
    middleware(req, res, (error) => {
      if (error !== undefined) return reject(error)
      const { socket } = res
      socket?.on('close', ignore)
      res.on('finish', () => {
        socket?.removeListener('close', ignore)
        order.push('watcher stops')
      })
      res.on('finish', () => resolve([...order, 'adapter hears']))
      res.end('paid')
    })
  })
}

/** As serverless-http and serverless-express make them. */
function socketOfAdapter(): object {
  const [on, removeListener, destroy, cork, uncork] = Array(5).fill(ignore)
  function write(_chunk: unknown, encoding: unknown, callback: unknown): boolean {
    const done = typeof encoding === 'function' ? encoding : callback
    if (typeof done === 'function') done()
    return true
  }
  return { _writableState: {}, writable: true, on, removeListener, destroy, cork, uncork, write }
}

function ignore(): void {}
