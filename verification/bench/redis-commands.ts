import { Cluster, Redis } from 'ioredis'
import { createClient } from 'redis'

/** The native commands that a floor needs, through a client as a service would use it. */
export interface RedisCommands {
  get(key: string): Promise<string | null>
  /** `SET … NX GET PX`: `null` where there was none, and it is set now. */
  claim(key: string, value: string, forMs: number): Promise<string | null>
  set(key: string, value: string, forMs: number): Promise<unknown>
}

/** A client, opened, with what the library's store takes of it. */
export interface OpenClient<Client> {
  readonly client: Client
  readonly commands: RedisCommands
  close(): Promise<unknown>
}

export async function openIoredis(port: number, enableAutoPipelining = false): Promise<OpenClient<Redis>> {
  const client = new Redis(port, { enableAutoPipelining })
  return {
    client,
    commands: {
      get: (key) => client.get(key),
      claim: (key, value, forMs) => client.set(key, value, 'PX', forMs, 'NX', 'GET'),
      set: (key, value, forMs) => client.set(key, value, 'PX', forMs),
    },
    close: () => client.quit(),
  }
}

export async function openIoredisCluster(port: number): Promise<Omit<OpenClient<Cluster>, 'commands'>> {
  const client = new Cluster([{ host: '127.0.0.1', port }])
  return { client, close: () => client.quit() }
}

export type NodeRedis = ReturnType<typeof createNodeRedis>

export async function openNodeRedis(port: number): Promise<OpenClient<NodeRedis>> {
  const client = createNodeRedis(port)
  await client.connect()
  return {
    client,
    commands: {
      get: (key) => client.get(key),
      claim: (key, value, PX) => client.set(key, value, { PX, NX: true, GET: true }),
      set: (key, value, PX) => client.set(key, value, { PX }),
    },
    close: () => client.close(),
  }
}

function createNodeRedis(port: number) {
  return createClient({ url: `redis://127.0.0.1:${port}` })
}

export async function readRedisVersion(port: number): Promise<string> {
  const client = new Redis(port)
  const info = await client.info('server')
  client.disconnect()
  return /^redis_version:(\S+)/m.exec(info)?.[1] ?? 'unknown'
}
