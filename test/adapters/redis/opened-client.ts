import type { RedisClient } from 'once-per-key/redis'

/** A client of an application's, as it opens and closes it. */
export interface OpenedClient {
  readonly client: RedisClient
  close(): void
}

/** Opens a client at a port: of a server, of a cluster's first node, or of a sentinel. */
export type OpenClient = (port: number) => Promise<OpenedClient>

const HOST = '127.0.0.1'

export function ioredis(create: (port: number) => RedisClient & { disconnect(): void }): OpenClient {
  return async (port) => {
    const client = create(port)
    return { client, close: () => client.disconnect() }
  }
}

type NodeRedis = RedisClient & { on(event: 'error', listener: () => void): unknown } & {
  connect(): Promise<unknown>
  destroy(): unknown
}

export function nodeRedis(create: (port: number) => NodeRedis): OpenClient {
  return async (port) => {
    const client = create(port)
    client.on('error', () => {})
    await client.connect()
    return { client, close: () => void client.destroy() }
  }
}

export const url = (port: number) => `redis://${HOST}:${port}`
export const nodes = (port: number) => [{ host: HOST, port }]
/** Someone else's wish: strings as Buffers or not, numbers as strings. */
export const TYPE_MAPPING = { 36: String, 58: String }
