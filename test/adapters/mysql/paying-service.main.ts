// A service in a process of its own, which pays once per key and is killed at any time. Its settings come as an argument.
import { createPool } from 'mysql2/promise'
import { MySqlStore } from 'once-per-key/mysql'
import { runner } from 'once-per-key/run'
import type { Asked, Said, ServiceSettings } from './paying-services.js'

const { uri, effects }: ServiceSettings = JSON.parse(process.argv[2] ?? '')
const commands = createPool({ uri, connectionLimit: 4 })
const application = createPool({ uri, connectionLimit: 12 })
application.on('connection', (connection) => void connection.query('SET SESSION innodb_lock_wait_timeout = 2'))
const store = new MySqlStore({ pool: commands, transactions: application })
const times = { leaseMs: 4_000, maxRunMs: 8_000, storeTimeoutMs: 1_000 }
const once = runner({ store, name: 'payouts', effects, ...times, onEvent: () => {} })

const pay = (key: string) =>
  once({ scope: 'acme', key, input: { key } }, (context) =>
    store.transaction(context, async (tx) => {
      const id = `${key}/${context.attempt}/${Math.random()}`
      await tx.query('INSERT INTO effects (name, id) VALUES (?, ?)', [key, id])
      say({ type: 'working' })
      return id
    }),
  )

function say(said: Said): void {
  process.send?.(said)
}

process.on('message', ({ number, key }: Asked) => {
  pay(key).then(
    (id) => say({ type: 'paid', number, id }),
    () => say({ type: 'failed', number }),
  )
})
// Whoever started it has gone.
process.once('disconnect', () => process.exit(1))
say({ type: 'ready' })
