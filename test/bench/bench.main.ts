// What protection costs, against none, against the least, and against others. `npm run bench -- --quick first replay`
import { Redis } from 'ioredis'
import { startRedis } from '../support/redis-server.js'
import { leaveServerCore } from './cores.js'
import { installEarlier } from './earlier-version.js'
import { startGenerator } from './generator.js'
import { nodesOf } from './nodes.js'
import { installPeers } from './peer-packages.js'
import { startProgress } from './progress.js'
import { setUpOf, writeReport } from './report.js'
import type { Ground } from './rounds.js'
import { growthTables } from './sections/growth.js'
import { latencyTable } from './sections/latency.js'
import { memoryTable } from './sections/memory.js'
import { measureMicro } from './sections/micro.js'
import { measureSizes } from './sections/sizes.js'
import { measureTraffic, type Traffic, trafficTables } from './sections/traffic.js'
import { probeWork } from './sections/work.js'
import { startedOnDemand } from './services.js'
import { type Section, settingsFrom, variantNamesFrom } from './settings.js'
import type { Table } from './table.js'
import { targetsTable } from './targets.js'
import { VARIANTS } from './variants.js'

const settings = settingsFrom(process.argv.slice(2), process.env)
const wants = (section: Section) => settings.sections.includes(section)
installPeers()
installEarlier()
const nodes = nodesOf(settings.nodes)
const chosen = variantNamesFrom(process.env)
const variants = VARIANTS.filter(({ name }) => chosen === undefined || chosen.includes(name))
leaveServerCore()

const server = await startRedis('--appendonly', 'no')
const redis = new Redis(server.port)
const services = startedOnDemand(server.port)
const generator = startGenerator()
const progress = startProgress()
const { rounds, warmUpRequests, seconds, growthSeconds } = settings
const ground: Ground = { generator, redis, redisPort: server.port, rounds, warmUpRequests, tell: progress.tell }

try {
  const tables: Table[] = []
  const work = wants('work') ? await probeWork(services, ground, server.signal) : undefined
  if (work !== undefined) tables.push(work.table)
  const failings = work?.failings ?? new Map()

  const traffic: Traffic[] = []
  for (const phase of ['first', 'replay'] as const) {
    if (!wants(phase)) continue
    const measured = await measureTraffic(phase, variants, nodes, ground, seconds)
    traffic.push(...measured)
    tables.push(...trafficTables(measured, failings))
  }

  if (wants('latency')) tables.push(await latencyTable(services, ground, growthSeconds))
  const grown = wants('growth') ? await growthTables(services, ground, growthSeconds, settings.mostRecords) : undefined
  if (grown !== undefined) tables.push(...grown.tables)
  if (wants('memory')) tables.push(await memoryTable(services, ground))

  const micro = wants('micro') ? await measureMicro(ground, settings.microOperations) : undefined
  const sizes = wants('micro') ? await measureSizes() : undefined
  if (micro !== undefined && sizes !== undefined) tables.push(micro.table, sizes.table)

  const measured = {
    ...{ traffic, roundTrips: work?.roundTrips, growthInMemory: grown?.growthInMemory },
    ...{ withMemoryBytes: sizes?.withMemoryBytes },
  }
  tables.push(targetsTable(measured))
  const version = /^redis_version:(\S+)/m.exec(await redis.info('server'))?.[1] ?? 'unknown'
  progress.end()
  await writeReport(setUpOf(settings, version, new Date()), tables, traffic)
} finally {
  progress.end()
  await services.end()
  await generator.end()
  redis.disconnect()
  await server.close()
}
