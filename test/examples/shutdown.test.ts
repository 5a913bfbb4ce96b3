import { once } from 'node:events'
import { Agent, createServer, request, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { gracefulShutdown } from '../../examples/payments/shutdown.js'

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

afterEach(() => {
  vi.useRealTimers()
  agent.destroy()
})

test('a request that runs gets its answer, and its connection is closed at once', async () => {
  const { shutDown, held, port } = await serve()
  const answer = get(port)
  const release = await held()
  const down = shutDown()
  release()
  expect((await answer).status).toBe(200)
  await down
})

test('a request that comes on an open connection during the shutdown is answered, and told that it is the last', async () => {
  const { shutDown, held, port } = await serve()
  const first = connect(port, 'localhost')
  let text = ''
  first.on('data', (chunk) => {
    text += chunk
  })
  first.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const release = await held()
  const down = shutDown()
  first.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const releaseNext = await held()
  release()
  releaseNext()
  await Promise.all([down, once(first, 'close')])
  expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(2)
  expect(text.match(/Connection: close/g)).toHaveLength(1)
})

test('a client that never ends its request is cut off in the end', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  const { server, shutDown, port } = await serve()
  const stuck = connect(port, 'localhost')
  stuck.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf')
  await once(server, 'request')
  let isDown = false
  const down = shutDown().then(() => {
    isDown = true
  })
  await vi.advanceTimersByTimeAsync(19_999)
  expect(isDown).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  await down
  stuck.destroy()
})

test('it waits for what still runs after the last answer', async () => {
  let end = () => {}
  const idle = new Promise<void>((resolve) => {
    end = resolve
  })
  const { server, shutDown } = await serve(() => idle)
  let isDown = false
  const down = shutDown().finally(() => {
    isDown = true
  })
  await once(server, 'close')
  await new Promise((resolve) => setImmediate(resolve))
  expect(isDown).toBe(false)
  end()
  expect(await down).toBe(true)
})

test('it does not wait for ever: what never ends is reported', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const { server, shutDown } = await serve(() => new Promise(() => {}))
  const down = shutDown()
  await once(server, 'close')
  await vi.advanceTimersByTimeAsync(3_000)
  expect(await down).toBe(false)
})

/** A server whose answers wait until the function that `held` gives is called; a request with a body is never answered. */
async function serve(idle = async () => {}) {
  const waiting: (() => void)[] = []
  let arrived = () => {}
  const server: Server = createServer((req, res) => {
    if (req.method === 'POST') return
    waiting.push(() => res.end('ok'))
    arrived()
  })
  const shutDown = gracefulShutdown(server, idle)
  server.listen(0)
  await once(server, 'listening')

  async function held(): Promise<() => void> {
    if (waiting.length === 0) {
      await new Promise<void>((resolve) => {
        arrived = resolve
      })
    }
    return waiting.shift() as () => void
  }

  return { server, shutDown, held, port: (server.address() as AddressInfo).port }
}

async function get(port: number): Promise<{ status: number | undefined }> {
  const sent = request({ port, agent }).end()
  const [response] = await once(sent, 'response')
  response.resume()
  await once(response, 'end')
  return { status: response.statusCode }
}
