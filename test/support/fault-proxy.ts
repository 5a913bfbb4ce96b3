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
  /**
   * The next request that contains `text` is held back. Resolves when one is, with a function that sends it on, also where its
   * client has gone meanwhile.
   */
  hold(text: string): Promise<() => void>
  /** From now on, asks for each HTTP request, by its first bytes, what of it is lost. */
  loseWhat(choose: (request: string) => Loss | undefined): void
  /** Forgets what it was told to lose and has not lost yet. */
  disarm(): void
  /** Delays each direction. */
  delay(ms: number): void
  /** Ends every connection; new ones are accepted. */
  reset(): void
  /** Cuts every connection, and refuses new ones until `heal`. */
  cut(): void
  /** Half open: connections stay, and new ones are accepted, but nothing passes until `heal`, which ends them. */
  freeze(): void
  heal(): void
  close(): Promise<void>
}

export type Loss = 'the request' | 'half of the request' | 'its reply' | 'the end of its reply'

interface Losing {
  readonly loss: Loss
  readonly done: () => void
}

/** As HTTP/1.1 begins one. */
const REQUEST = /^[A-Z]+ \//

export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  const links = new Set<() => void>()
  let isCut = false
  let isFrozen = false
  let isOver = false
  let delayMs = 0
  let armed: (Losing & { readonly text: string }) | undefined
  let holding: { readonly text: string; held(sendOn: () => void): void } | undefined
  let choose: (request: string) => Loss | undefined = () => undefined

  const proxy = createServer((client) => {
    if (isCut) return void client.destroy()
    const server = connect(targetPort, '127.0.0.1')
    const [toServer, toClient] = [passage(server), passage(client)]
    let losing: Losing | undefined
    let isHeld = false

    client.on('data', (bytes) => {
      if (isFrozen) return
      if (holding !== undefined && bytes.includes(holding.text)) {
        const { held } = holding
        holding = undefined
        isHeld = true
        return held(() => {
          isHeld = false
          toServer(bytes)
          // Not `end`: a reply that nobody takes would reset the connection while the server still works.
          if (client.destroyed) server.end()
        })
      }
      const found = losingOf(bytes)
      if (found === undefined) return toServer(bytes)
      if (found.loss === 'its reply' || found.loss === 'the end of its reply') {
        losing = found
        return toServer(bytes)
      }
      if (found.loss === 'half of the request') toServer(bytes.subarray(0, bytes.length / 2))
      end()
      found.done()
    })
    server.on('data', (bytes) => {
      if (isFrozen) return
      if (losing === undefined) return toClient(bytes)
      if (losing.loss === 'the end of its reply') toClient(bytes.subarray(0, -1))
      end()
      losing.done()
    })
    // No reset: it overtakes bytes that are not read yet, and one that meets an error keeps Node from exiting (20.20).
    function end(): void {
      client.destroy()
      // What is on its way arrives, although whoever sent it has gone.
      if (isHeld && !isOver) return
      links.delete(end)
      server.destroySoon()
    }
    links.add(end)
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')

  function losingOf(bytes: Buffer): Losing | undefined {
    if (armed !== undefined && bytes.includes(armed.text)) {
      const found = armed
      armed = undefined
      return found
    }
    const loss = REQUEST.test(bytes.toString('latin1', 0, 16)) ? choose(bytes.toString('latin1')) : undefined
    return loss && { loss, done() {} }
  }

  /** Bytes come out as they went in, also where the delay has changed in between. */
  function passage(to: Socket): (bytes: Buffer) => void {
    const waiting: Buffer[] = []
    return (bytes) => {
      if (delayMs === 0 && waiting.length === 0) return void to.write(bytes)
      waiting.push(bytes)
      setTimeout(() => {
        const next = waiting.shift()
        if (next !== undefined && to.writable && !isFrozen) to.write(next)
      }, delayMs)
    }
  }

  function arm(text: string, loss: Loss): Promise<void> {
    return new Promise((done) => {
      armed = { text, loss, done }
    })
  }

  function endAll(): void {
    for (const end of [...links]) end()
  }

  return {
    port: (proxy.address() as AddressInfo).port,
    dropReplyTo: (text) => arm(text, 'its reply'),
    dropRequest: (text) => arm(text, 'the request'),
    tearRequest: (text) => arm(text, 'half of the request'),
    hold: (text) =>
      new Promise((held) => {
        holding = { text, held }
      }),
    loseWhat(given) {
      choose = given
    },
    disarm: () => {
      armed = undefined
      holding = undefined
    },
    delay: (ms) => {
      delayMs = ms
    },
    reset: endAll,
    cut() {
      isCut = true
      endAll()
    },
    freeze() {
      isFrozen = true
    },
    heal() {
      if (isFrozen) endAll()
      isFrozen = false
      isCut = false
    },
    async close() {
      isOver = true
      endAll()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}
