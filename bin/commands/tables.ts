import { MySqlStore } from 'once-per-key/mysql'
import { PostgresStore } from 'once-per-key/postgres'
import { type CommandLine, UsageError } from '../command-line.js'
import { printJson } from '../printed.js'
import type { Target } from '../target.js'

export async function printSchema({ options }: CommandLine): Promise<number> {
  const sql = buildSchemaSql(options)
  if (options.json) printJson({ sql })
  else process.stdout.write(sql)
  return 0
}

export async function runMigrate({ options }: CommandLine, target: Target): Promise<number> {
  if (target.kind === 'postgres' || target.kind === 'mysql' || target.kind === 'sqlite') await target.store.migrate()
  if (options.json) printJson({ migrated: true })
  else console.log('The store is up to date.')
  return 0
}

function buildSchemaSql({ for: kind = 'postgres', schema, prefix }: CommandLine['options']): string {
  const other = kind === 'mysql' ? schema : prefix
  if (other !== undefined) throw new UsageError('--schema is for Postgres, and --prefix for MySQL.')
  if (kind === 'mysql') return MySqlStore.schemaSql({ prefix })
  if (kind === 'postgres') return PostgresStore.schemaSql({ schema })
  throw new UsageError('--for takes postgres or mysql.')
}
