import { PostgresStore } from 'once-per-key/postgres'
import type { CommandLine } from '../command-line.js'
import type { Target } from '../target.js'

export async function schema({ options }: CommandLine): Promise<number> {
  process.stdout.write(PostgresStore.schemaSql({ schema: options.schema }))
  return 0
}

export async function migrate(_line: CommandLine, target: Target): Promise<number> {
  if (target.kind === 'postgres' || target.kind === 'sqlite') await target.store.migrate()
  console.log('The store is up to date.')
  return 0
}
