import { Redis } from 'ioredis'
import type { RedisClient } from 'once-per-key/redis'
import { createClient } from 'redis'

/** A client library as its users get it: not one option is set. */
export interface ClientLibrary {
  readonly name: 'ioredis' | 'node-redis'
  /** Whether a command whose connection broke is sent again by the library, rather than failed. */
  readonly sendsAgain: boolean
  open(port: number): Promise<OpenClient>
}

export interface OpenClient {
  readonly client: RedisClient
  /** Ends it as an application does: what is queued is sent first. */
  quit(): Promise<unknown>
  /** Ends it at once, whatever is queued. */
  close(): void
}

export const LIBRARIES: readonly ClientLibrary[] = [
  {
    name: 'ioredis',
    sendsAgain: true,
    async open(port) {
      const client = new Redis(port)
      client.on('error', () => {}) // A lost connection is what these tests are about.
      return { client, quit: () => client.quit(), close: () => client.disconnect() }
    },
  },
  {
    name: 'node-redis',
    sendsAgain: false,
    async open(port) {
      const client = createClient({ url: `redis://127.0.0.1:${port}` })
      client.on('error', () => {})
      await client.connect()
      return { client, quit: () => client.close(), close: () => client.destroy() }
    },
  },
]
