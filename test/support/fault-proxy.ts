import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Stands between a client and a server, and loses what it is told to lose. Dropped bytes always end their connection. */
export interface FaultProxy {
  readonly port: number
  /**
   * The next request that contains `text` reaches the server, but its reply is dropped, and its connection with it.
   * Resolves when that has happened.
   */
  dropReplyTo(text: string): Promise<void>
  /** The next request that contains `text` is dropped before it reaches the server, and its connection with it. */
  dropRequest(text: string): Promise<void>
  /** Half of the next request that contains `text` reaches the server; the rest is dropped, and its connection with it. */
  tearRequest(text: string): Promise<void>
  /** Delays each direction. */
  delay(ms: number): void
  /** Cuts every connection, and refuses new ones until `heal`. */
  cut(): void
  heal(): void
  close(): Promise<void>
}

/** How much of a request reaches the server. */
type Passes = 'none' | 'half' | 'all'

export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  const links = new Set<() => void>()
  let isCut = false
  let delayMs = 0
  let armed: { readonly text: string; readonly passes: Passes; readonly done: () => void } | undefined

  const proxy = createServer((client) => {
    if (isCut) return void client.resetAndDestroy()
    const server = connect(targetPort, '127.0.0.1')
    let losing: (() => void) | undefined

    client.on('data', (bytes) => {
      if (armed === undefined || !bytes.includes(armed.text)) return pass(server, bytes)
      const { passes, done } = armed
      armed = undefined
      if (passes === 'all') {
        losing = done
        return pass(server, bytes)
      }
      if (passes === 'half') server.write(bytes.subarray(0, bytes.length / 2))
      end()
      done()
    })
    server.on('data', (bytes) => {
      if (losing === undefined) return pass(client, bytes)
      end()
      losing()
    })
    function end(): void {
      links.delete(end)
      client.resetAndDestroy()
      server.destroySoon()
    }
    links.add(end)
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')

  function pass(to: Socket, bytes: Buffer): void {
    if (delayMs === 0) to.write(bytes)
    else setTimeout(() => to.writable && to.write(bytes), delayMs)
  }

  function arm(text: string, passes: Passes): Promise<void> {
    return new Promise((done) => {
      armed = { text, passes, done }
    })
  }

  function endAll(): void {
    for (const end of [...links]) end()
  }

  return {
    port: (proxy.address() as AddressInfo).port,
    dropReplyTo: (text) => arm(text, 'all'),
    dropRequest: (text) => arm(text, 'none'),
    tearRequest: (text) => arm(text, 'half'),
    delay: (ms) => {
      delayMs = ms
    },
    cut() {
      isCut = true
      endAll()
    },
    heal() {
      isCut = false
    },
    async close() {
      endAll()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}
