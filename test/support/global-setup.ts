import { mariaDbBinary } from '../../examples/servers/mariadb.js'
import { postgresFolder } from '../../examples/servers/postgres-programs.js'
import { pgBouncerBinary } from './pgbouncer.js'
import { redisBinary } from './redis-server.js'
import { endServers, shareServers } from './servers.js'

/** Once, before any worker starts: two that installed it at the same time would stand in each other's way. */
export default function setup(): () => void {
  for (const find of [redisBinary, postgresFolder, pgBouncerBinary, mariaDbBinary]) orSayWhatToInstall(find)
  shareServers()
  return endServers
}

function orSayWhatToInstall(find: () => unknown): void {
  try {
    find()
  } catch (error) {
    console.error((error as Error).message)
    process.exit(1)
  }
}
