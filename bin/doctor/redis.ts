import type { Redis } from 'ioredis'
import { formatBytes } from '../printed.js'
import type { RedisTarget } from '../targets/redis.js'
import { compareClock, measureLatency } from './everywhere.js'
import {
  createFindingIfBad,
  createGreenFinding,
  createRedFinding,
  createYellowFinding,
  type Finding,
} from './finding.js'

/** INFO of a server: names and values. */
type Info = ReadonlyMap<string, string>

export async function examineRedis({ servers }: RedisTarget): Promise<Finding[]> {
  const found = await Promise.all(servers.map(examineServer))
  if (servers.length < 2) return found.flat()
  // In a cluster each master for itself.
  return found.flatMap((findings, i) =>
    findings.map((finding) => ({ ...finding, about: `${formatAddress(servers[i] as Redis)}: ${finding.about}` })),
  )
}

async function examineServer(redis: Redis): Promise<Finding[]> {
  const info = readInfo(await redis.info())
  return [
    examineVersion(info),
    examineRole(info),
    examineEvictionPolicy(info),
    examineMemory(info),
    examinePersistence(info),
    await examineReplication(info, redis),
    await compareClock(async () => {
      const [seconds, micros] = await redis.time()
      return Number(seconds) * 1_000 + Number(micros) / 1_000
    }),
    await measureLatency(() => redis.time()),
  ]
}

function examineVersion(info: Info): Finding {
  const valkey = info.get('valkey_version')
  if (valkey !== undefined) return createGreenFinding('version', `Valkey ${valkey}`)
  const redis = info.get('redis_version') ?? 'unknown'
  const isOld = Number.parseInt(redis, 10) < 7
  return createFindingIfBad(isOld, 'version', `Redis ${redis}`, createRedFinding, 'Use Redis 7 or later, or Valkey.')
}

function examineRole(info: Info): Finding {
  const isReplica = info.get('role') === 'slave'
  return createFindingIfBad(
    isReplica,
    'role',
    info.get('role') ?? 'unknown',
    createRedFinding,
    'This is a replica: give the address of the master.',
  )
}

function examineEvictionPolicy(info: Info): Finding {
  const policy = info.get('maxmemory_policy') ?? 'unknown'
  const wayOut =
    'A record that is evicted is a payment made twice: CONFIG SET maxmemory-policy noeviction, and in redis.conf.'
  return createFindingIfBad(policy !== 'noeviction', 'eviction', policy, createRedFinding, wayOut)
}

function examineMemory(info: Info): Finding {
  const used = Number(info.get('used_memory'))
  const limit = Number(info.get('maxmemory'))
  if (limit === 0) {
    const wayOut = 'Set maxmemory below what the machine has: beyond that, the kernel ends Redis.'
    return createYellowFinding('memory', `${formatBytes(used)} used, no limit`, wayOut)
  }
  const share = used / limit
  const found = `${formatBytes(used)} of ${formatBytes(limit)} used (${Math.round(100 * share)} %)`
  const wayOut = 'Where it is full, new keys get 503. Raise maxmemory, or shorten retentionMs.'
  if (share > 0.9) return createRedFinding('memory', found, wayOut)
  return createFindingIfBad(share > 0.7, 'memory', found, createYellowFinding, wayOut)
}

function examinePersistence(info: Info): Finding {
  const isOn = info.get('aof_enabled') === '1'
  if (!isOn) {
    const wayOut =
      'After a restart, keys since the last snapshot are new again: CONFIG SET appendonly yes, and in redis.conf.'
    return createRedFinding('persistence', 'appendonly no', wayOut)
  }
  const lastWrite = info.get('aof_last_write_status') ?? 'ok'
  return createFindingIfBad(
    lastWrite !== 'ok',
    'persistence',
    `appendonly yes, last write ${lastWrite}`,
    createRedFinding,
    'Is the disk full? See Redis’s log.',
  )
}

async function examineReplication(info: Info, redis: Redis): Promise<Finding> {
  const replicas = Number(info.get('connected_slaves'))
  if (replicas === 0) return createGreenFinding('replication', 'no replicas, so no failover that loses writes')
  const [, least] = (await redis.config('GET', 'min-replicas-to-write').catch(() => [])) as string[]
  const found = `${replicas} replicas, min-replicas-to-write ${least ?? 'not shown'}`
  const wayOut =
    'A failover can lose the last writes, silently. min-replicas-to-write 1 and min-replicas-max-lag 10 narrow that window; Postgres ' +
    'with synchronous replicas closes it.'
  return createFindingIfBad(!(Number(least) >= 1), 'replication', found, createYellowFinding, wayOut)
}

function readInfo(text: string): Info {
  return new Map([...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name = '', value = '']) => [name, value]))
}

function formatAddress({ options }: Redis): string {
  return `${options.host}:${options.port}`
}
