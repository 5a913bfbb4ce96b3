import { Redis } from 'ioredis'
import { freePort, type RedisServer, startRedis } from './redis-server.js'

/** A real cluster of three masters, each with a third of the slots. */
export interface RedisCluster {
  readonly nodes: readonly RedisServer[]
  close(): Promise<void>
}

const SLOTS = 16_384

export async function startRedisCluster(): Promise<RedisCluster> {
  const nodes = await Promise.all([startNode(), startNode(), startNode()])
  const clients = nodes.map(({ port }) => new Redis(port))
  const [first] = nodes.map(({ port }) => port)
  await Promise.all(
    clients.map(async (client, i) => {
      const share = (part: number) => Math.floor((SLOTS * part) / nodes.length)
      // Nodes that all begin at epoch 0 would first have to settle whose slots are newer.
      await client.cluster('SET-CONFIG-EPOCH', i + 1)
      await client.call('CLUSTER', 'ADDSLOTSRANGE', share(i), share(i + 1) - 1)
    }),
  )
  for (const [i, client] of clients.entries()) {
    if (i > 0) await client.call('CLUSTER', 'MEET', '127.0.0.1', `${first}`, `${nodes[0]?.busPort}`)
  }
  await Promise.all(clients.map(knowsAll))
  for (const client of clients) client.disconnect()
  return {
    nodes,
    close: async () => void (await Promise.all(nodes.map((node) => node.close()))),
  }
}

async function startNode(): Promise<RedisServer & { readonly busPort: number }> {
  const busPort = await freePort()
  const server = await startRedis('--cluster-enabled', 'yes', '--cluster-port', `${busPort}`, '--appendonly', 'no')
  return { ...server, busPort }
}

/** Each node must have heard of every slot before a client asks it. */
async function knowsAll(client: Redis): Promise<void> {
  for (;;) {
    const info = String(await client.cluster('INFO'))
    if (info.includes('cluster_state:ok') && info.includes('cluster_slots_ok:16384')) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
