import { postgresFolder } from '../../examples/servers/postgres-programs.js'
import { pgBouncerBinary } from './pgbouncer.js'
import { redisBinary } from './redis-server.js'

/** Once, before any worker starts: two that installed it at the same time would stand in each other's way. */
export default function setup(): void {
  redisBinary()
  postgresFolder()
  pgBouncerBinary()
}
