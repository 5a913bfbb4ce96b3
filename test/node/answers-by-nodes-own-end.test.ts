import { once } from 'node:events'
import { createServer, type IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { type IdempotencyEvent, idempotency, singleTenant } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { mapStore } from '../support/map-store.js'

// A firewall in the process (dd-trace has one) answers by Node's own `end`, because sessions replace that of the response. A time
// limit in front may know both functions from before. The body left without a head, and the key stayed in flight until `maxRunMs`.

type Handler = (req: IncomingMessage, res: ServerResponse) => void

/** As a firewall does it. */
const block: Handler = (_req, res) => {
  const body = JSON.stringify({ error: 'blocked' })
  res.writeHead(403, { 'Content-Type': 'application/json', 'Content-Length': body.length })
  ServerResponse.prototype.end.call(res, body, 'utf8')
}

const STORES: Record<string, () => Store> = {
  'replies at once': () => new MemoryStore(),
  'replies later': () => mapStore(Date.now),
}

describe.each(Object.entries(STORES))('with a store that %s', (_, makeStore) => {
  test('an answer by Node’s own `end` is judged and arrives', async () => {
    const { port, told, idle } = await serve(makeStore(), block)

    expect(await responses(port, 1)).toEqual([{ status: '403', body: '{"error":"blocked"}' }])
    await idle()
    expect(told).toEqual(['claimed', 'failed: refused'])
  })

  test('so is a success, and it is replayed', async () => {
    const { port, told } = await serve(makeStore(), (_req, res) => {
      ServerResponse.prototype.write.call(res, 'paid ', 'utf8')
      ServerResponse.prototype.end.call(res, '€1', 'utf8')
    })

    const paid = { status: '200', body: 'paid €1' }
    expect([...(await responses(port, 1)), ...(await responses(port, 1))]).toEqual([paid, paid])
    expect(told).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('what follows before it has left changes nothing', async () => {
    const { port, told } = await serve(makeStore(), (req, res) => {
      block(req, res)
      res.end('late')
      req.socket.destroy()
    })

    expect(await responses(port, 1)).toEqual([{ status: '403', body: '{"error":"blocked"}' }])
    expect(told).toEqual(['claimed', 'failed: refused'])
  })

  test('behind another response of its connection, too', async () => {
    const { port } = await serve(makeStore(), (req, res) => {
      if (req.url === '/1') block(req, res)
      else setImmediate(() => res.end('first'))
    })

    expect(await responses(port, 2)).toEqual([
      { status: '200', body: 'first' },
      { status: '403', body: '{"error":"blocked"}' },
    ])
  })

  test('an answer by Node’s own `writeHead` and `end` leaves as it is, and the outcome unknown', async () => {
    const { port, told, idle } = await serve(makeStore(), (_req, res) => {
      ServerResponse.prototype.writeHead.call(res, 503, { 'Content-Length': 4 })
      ServerResponse.prototype.end.call(res, 'late', 'utf8')
    })

    expect(await responses(port, 1)).toEqual([{ status: '503', body: 'late' }])
    await idle()
    expect(told).toEqual(['claimed', 'failed: no_answer'])
  })

  test('a firewall that looks at each head can send another answer, and the record stands', async () => {
    let isBlocked = true
    const { port, told } = await serve(
      makeStore(),
      (_req, res) => void res.end('secret'),
      (res) => {
        const { writeHead } = res
        res.writeHead = ((...args: [number]) => {
          if (!isBlocked) return writeHead.apply(res, args)
          isBlocked = false
          block(res.req, res)
          return res
        }) as typeof writeHead
      },
    )

    expect(await responses(port, 1)).toEqual([{ status: '403', body: '{"error":"blocked"}' }])
    expect(await responses(port, 1)).toEqual([{ status: '200', body: 'secret' }])
    expect(told).toEqual(['claimed', 'completed', 'replayed'])
  })
})

async function serve(store: Store, handler: Handler, before: (res: ServerResponse) => void = () => {}) {
  const told: string[] = []
  const onEvent = (event: IdempotencyEvent) =>
    void told.push(event.type === 'failed' ? `failed: ${event.because}` : event.type)
  const protect = idempotency({ store, scope: singleTenant, onEvent })
  const server = createServer((req, res) => {
    before(res)
    protect(req, res, () => handler(req, res))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, told, idle: protect.idle }
}

/** Of so many requests that are sent at once on one connection, as the bytes on the wire have them. */
async function responses(port: number, amount: number): Promise<{ status: string | undefined; body: string }[]> {
  const socket = connect(port, '127.0.0.1')
  for (let i = 0; i < amount; i++) {
    const last = i === amount - 1 ? 'Connection: close\r\n' : ''
    socket.write(`POST /${i} HTTP/1.1\r\nHost: a\r\nIdempotency-Key: ${i}\r\n${last}Content-Length: 0\r\n\r\n`)
  }
  const pieces: Buffer[] = []
  socket.on('data', (bytes: Buffer) => pieces.push(bytes))
  await once(socket, 'close')
  return Buffer.concat(pieces)
    .toString()
    .split(/(?=HTTP\/1\.1 \d)/)
    .map((response) => {
      const [head = '', ...body] = response.split('\r\n\r\n')
      return { status: /^HTTP\/1\.1 (\d+)/.exec(head)?.[1], body: body.join('\r\n\r\n') }
    })
}
