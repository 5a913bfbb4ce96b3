import { Redis } from 'ioredis'
import { freePort, type RedisServer, startRedis } from './redis-server.js'

/** A real cluster of three masters, each with a third of the slots. */
export interface RedisCluster {
  readonly nodes: readonly RedisServer[]
  /** One for each master, in their order, where they were asked for. */
  readonly replicas: readonly RedisServer[]
  close(): Promise<void>
}

export interface RedisClusterOptions {
  /** @default false */
  readonly withReplicas?: boolean
  /** Settings of one node more; masters come first. */
  readonly argumentsOf?: (node: number) => readonly string[]
}

const SLOTS = 16_384

export async function startRedisCluster({
  withReplicas = false,
  argumentsOf = () => [],
}: RedisClusterOptions = {}): Promise<RedisCluster> {
  const all = await Promise.all(Array.from({ length: withReplicas ? 6 : 3 }, (_, i) => startNode(argumentsOf(i))))
  const [nodes, replicas] = [all.slice(0, 3), all.slice(3)]
  const clients = all.map(({ port }) => new Redis(port))
  await Promise.all(
    clients.map(async (client, i) => {
      // Nodes that all begin at epoch 0 would first have to settle whose slots are newer.
      await client.cluster('SET-CONFIG-EPOCH', i + 1)
      const share = (part: number) => Math.floor((SLOTS * part) / nodes.length)
      if (i < nodes.length) await client.call('CLUSTER', 'ADDSLOTSRANGE', share(i), share(i + 1) - 1)
    }),
  )
  for (const client of clients.slice(1)) {
    await client.call('CLUSTER', 'MEET', '127.0.0.1', `${nodes[0]?.port}`, `${nodes[0]?.busPort}`)
  }
  await Promise.all(clients.map(knowsAll))
  const ids = await Promise.all(clients.map((client) => client.cluster('MYID')))
  await Promise.all(clients.slice(nodes.length).map((client, i) => follow(client, String(ids[i]))))
  for (const client of clients) client.disconnect()
  return {
    nodes,
    replicas,
    close: async () => void (await Promise.all(all.map((node) => node.close()))),
  }
}

async function startNode(extraArgs: readonly string[]): Promise<RedisServer & { readonly busPort: number }> {
  const busPort = await freePort()
  const cluster = ['--cluster-enabled', 'yes', '--cluster-port', `${busPort}`]
  const server = await startRedis(...cluster, '--appendonly', 'no', ...extraArgs)
  return { ...server, busPort }
}

/** A node can follow only one that it has met, and that is not at once. */
async function follow(client: Redis, masterId: string): Promise<void> {
  while (true) {
    try {
      await client.cluster('REPLICATE', masterId)
      break
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  while (!String(await client.info('replication')).includes('master_link_status:up')) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Each node must have heard of every slot before a client asks it. */
async function knowsAll(client: Redis): Promise<void> {
  for (;;) {
    const info = String(await client.cluster('INFO'))
    if (info.includes('cluster_state:ok') && info.includes('cluster_slots_ok:16384')) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
