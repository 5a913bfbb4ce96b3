// A service in a process of its own, which pays once per key and is killed at any time. Its settings come as an argument.
import { createPool } from 'mysql2/promise'
import type { IdempotencyContext } from 'once-per-key/core'
import { MySqlStore } from 'once-per-key/mysql'
import { PostgresStore } from 'once-per-key/postgres'
import { runner } from 'once-per-key/run'
import { Pool } from 'pg'
import type { Asked, Said, ServiceSettings } from './paying-services.js'

const { dialect, uri, effects }: ServiceSettings = JSON.parse(process.argv[2] ?? '')
const { store, pay } = dialect === 'mysql' ? onMySql() : onPostgres()
const times = { leaseMs: 4_000, maxRunMs: 8_000, storeTimeoutMs: 1_000 }
const once = runner({ store, name: 'payouts', effects, ...times, onEvent: () => {} })

function onMySql() {
  const application = createPool({ uri, connectionLimit: 12 })
  application.on('connection', (connection) => void connection.query('SET SESSION innodb_lock_wait_timeout = 2'))
  const store = new MySqlStore({ pool: createPool({ uri, connectionLimit: 4 }), transactions: application })
  const pay = (context: IdempotencyContext, key: string, id: string) =>
    store.transaction(context, async (tx) => {
      await tx.query('INSERT INTO effects (name, id) VALUES (?, ?)', [key, id])
      say({ type: 'working' })
      return id
    })
  return { store, pay }
}

function onPostgres() {
  const open = (max: number) => new Pool({ connectionString: uri, max }).on('error', () => {})
  const store = new PostgresStore({ pool: open(4), transactions: open(12) })
  const pay = (context: IdempotencyContext, key: string, id: string) =>
    store.transaction(context, async (tx) => {
      await tx.query("SET LOCAL lock_timeout = '2s'")
      await tx.query('INSERT INTO effects (name, id) VALUES ($1, $2)', [key, id])
      say({ type: 'working' })
      return id
    })
  return { store, pay }
}

function say(said: Said): void {
  process.send?.(said)
}

process.on('message', ({ number, key }: Asked) => {
  once({ scope: 'acme', key, input: { key } }, (context) =>
    pay(context, key, `${key}/${context.attempt}/${Math.random()}`),
  ).then(
    (id) => say({ type: 'paid', number, id }),
    () => say({ type: 'failed', number }),
  )
})
// Whoever started it has gone.
process.once('disconnect', () => process.exit(1))
say({ type: 'ready' })
