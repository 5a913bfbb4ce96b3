// What protection costs, against none, against the least, and against others. `npm run bench -- --quick first replay`
import { Redis } from 'ioredis'
import { startRedis } from '../../test/support/redis-server.js'
import { leaveServerCore } from './cores.js'
import { cpuMicrosOf, mySqlDatabase, sqliteVersion, startDatabase, startMySql, versionOf } from './database.js'
import { installEarlier } from './earlier-version.js'
import { startGenerator } from './generator.js'
import { nodesOf } from './nodes.js'
import { installPeers } from './peer-packages.js'
import { startProgress } from './progress.js'
import { readRedisVersion } from './redis-commands.js'
import { setUpOf, writeReport } from './report.js'
import type { Ground } from './rounds.js'
import { databaseTables, transactionTable } from './sections/databases.js'
import { latencyTable } from './sections/latency.js'
import { memoryTable } from './sections/memory.js'
import { measureTraffic, type Traffic, trafficTables } from './sections/traffic.js'
import { probeWork } from './sections/work.js'
import { startedOnDemand } from './services.js'
import { hasPeers, type Section, settingsFrom, variantNamesFrom } from './settings.js'
import type { Table } from './table.js'
import { targetsTable } from './targets.js'
import { type DatabaseName, VARIANTS, type Variant } from './variants.js'

const settings = settingsFrom(process.argv.slice(2), process.env)
const wants = (section: Section) => settings.sections.includes(section)
if (settings.sections.some(hasPeers)) installPeers()
installEarlier()
const nodes = nodesOf(settings.nodes)
const chosen = variantNamesFrom(process.env)
const isChosen = ({ name, isRare }: Variant) => chosen?.includes(name) ?? (wants('others') || isRare !== true)
const variants = VARIANTS.filter(isChosen)
leaveServerCore()

const database = wants('postgres') ? await startDatabase() : undefined
const server = await startRedis('--appendonly', 'no')
const redis = new Redis(server.port)
const mySql = wants('mysql') ? await startMySql() : undefined
const inMySql = mySql && (await mySqlDatabase(mySql))
const servers = {
  redisPort: server.port,
  ...(database && { postgresUrl: database.url() }),
  ...(inMySql && { mysqlUrl: inMySql.url }),
}
const services = startedOnDemand(servers)
const generator = startGenerator()
const progress = startProgress()
const { rounds, warmUpRequests, seconds, latencySeconds } = settings
const processesOf = (name: DatabaseName): readonly number[] =>
  name === 'postgres' ? (database?.processes() ?? []) : mySql === undefined || name !== 'mysql' ? [] : [mySql.pid()]
const ground: Ground = {
  ...{ generator, redis, servers, rounds, warmUpRequests, tell: progress.tell },
  databaseCpu: (name) => cpuMicrosOf(processesOf(name)),
}

// From the start of the process: what is installed first takes part of it.
const endsAt = settings.minutes * 60_000
const phases = (['first', 'replay'] as const).filter((phase) => wants(phase) || wants('others'))
const databases = (['postgres', 'mysql', 'sqlite'] as const).filter(wants)
/** What is measured in rounds, and still to come: each gets an equal part of the time that is left. */
let parts = phases.length + databases.length
function timed(): Ground {
  const now = performance.now()
  return { ...ground, until: now + (endsAt - now) / parts-- }
}

try {
  const tables: Table[] = []
  const work = wants('work') ? await probeWork(services, ground, server.signal) : undefined
  if (work !== undefined) tables.push(...work.tables)
  const failings = work?.failings ?? new Map()

  const traffic: Traffic[] = []
  for (const phase of phases) {
    const measured = await measureTraffic(phase, variants, nodes, timed(), seconds)
    traffic.push(...measured)
    tables.push(...trafficTables(measured, failings))
  }

  if (wants('latency')) tables.push(await latencyTable(services, ground, latencySeconds))
  if (wants('memory')) tables.push(await memoryTable(services, ground))

  if (database !== undefined) tables.push(await transactionTable(database, progress.tell))
  // On the Node that runs this: for which better-sqlite3 is built, too.
  for (const name of databases) tables.push(...(await databaseTables(name, nodesOf(undefined), timed(), seconds)))

  const targets = targetsTable({ traffic, roundTrips: work?.roundTrips })
  if (targets.rows.length > 0) tables.push(targets)
  const versions = [`Redis ${await readRedisVersion(server.port)}`]
  if (database !== undefined) versions.push(`Postgres ${await versionOf(database)}`)
  if (inMySql !== undefined) versions.push(`MariaDB ${inMySql.version}`)
  if (wants('sqlite')) versions.push(`SQLite ${sqliteVersion()}`)
  progress.end()
  await writeReport(setUpOf(settings, versions, new Date()), tables)
} finally {
  progress.end()
  await services.end()
  await generator.end()
  redis.disconnect()
  await server.close()
  await database?.close()
  await mySql?.stop()
  mySql?.remove()
}
