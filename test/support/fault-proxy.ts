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
  /** Delays each direction. */
  delay(ms: number): void
  /** Cuts every connection, and refuses new ones until `heal`. */
  cut(): void
  heal(): void
  close(): Promise<void>
}

export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  const pairs = new Set<readonly [Socket, Socket]>()
  let isCut = false
  let delayMs = 0
  let fault: { readonly text: string; readonly kind: 'request' | 'reply'; readonly done: () => void } | undefined

  const proxy = createServer((client) => {
    if (isCut) {
      client.destroy()
      return
    }
    const server = connect(targetPort, '127.0.0.1')
    const pair = [client, server] as const
    pairs.add(pair)
    let dropsReply: (() => void) | undefined

    client.on('data', (bytes) => {
      if (fault !== undefined && bytes.includes(fault.text)) {
        const { kind, done } = fault
        fault = undefined
        if (kind === 'request') {
          end()
          return done()
        }
        dropsReply = done
      }
      pass(server, bytes)
    })
    server.on('data', (bytes) => {
      if (dropsReply === undefined) return pass(client, bytes)
      end()
      dropsReply()
    })
    function end(): void {
      client.resetAndDestroy()
      server.destroy()
      pairs.delete(pair)
    }
    for (const socket of pair) socket.on('error', end).on('close', end)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')

  function pass(to: Socket, bytes: Buffer): void {
    if (delayMs === 0) to.write(bytes)
    else setTimeout(() => to.writable && to.write(bytes), delayMs)
  }

  function arm(kind: 'request' | 'reply', text: string): Promise<void> {
    return new Promise((done) => {
      fault = { kind, text, done }
    })
  }

  return {
    port: (proxy.address() as AddressInfo).port,
    dropReplyTo: (text) => arm('reply', text),
    dropRequest: (text) => arm('request', text),
    delay: (ms) => {
      delayMs = ms
    },
    cut() {
      isCut = true
      for (const [client, server] of pairs) {
        client.resetAndDestroy()
        server.destroy()
      }
    },
    heal() {
      isCut = false
    },
    async close() {
      for (const [client, server] of pairs) {
        client.destroy()
        server.destroy()
      }
      proxy.close()
      await once(proxy, 'close')
    },
  }
}
