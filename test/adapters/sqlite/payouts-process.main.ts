// A service whose handler reserves a payout, calls the bank, and records it. It can kill itself at a point of that.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type IdempotencyContext, idempotency, singleTenant } from 'once-per-key'
import { SqliteStore } from 'once-per-key/sqlite'
import { type DriverName, openDatabase } from './drivers.js'

const [, , driver, file, point] = process.argv as [string, string, DriverName, string, string]

const database = openDatabase(driver, file)
database.exec('PRAGMA busy_timeout = 5000')
const store = new SqliteStore({ database })
await store.migrate()
const once = idempotency({ store, scope: singleTenant, leaseMs: 1_000, storeTimeoutMs: 250, maxRunMs: 2_000 })

/** How far the payout is; its COMMIT is the one that comes next. */
let isRecording = false
const exec = database.exec.bind(database)
// Not every driver lets its methods be assigned.
Object.defineProperty(database, 'exec', {
  value(sql: string) {
    if (isRecording && sql === 'COMMIT') reached('before the COMMIT')
    const done = exec(sql)
    if (isRecording && sql === 'COMMIT') reached('behind the COMMIT')
    return done
  },
})

const server = createServer((req, res) => {
  once(req, res, (error) => {
    if (error !== undefined) return res.writeHead(500).end()
    const { idempotency: run } = req as typeof req & { readonly idempotency: IdempotencyContext }
    pay(run, res).catch(() => res.writeHead(500).end())
  })
})

async function pay(run: IdempotencyContext, res: import('node:http').ServerResponse): Promise<void> {
  const id = run.deriveKey('payout')
  reached('before the reservation')
  await store.step(run, 'reserve', (tx) => {
    tx.prepare("INSERT INTO payouts VALUES (?, ?, 'reserved') ON CONFLICT DO NOTHING").run(id, run.key)
    reached('inside the step')
  })
  reached('behind the reservation')
  await new Promise((resolve) => setImmediate(resolve)) // The bank, which knows the id.
  await store.transaction(run, (tx) => {
    isRecording = true
    tx.prepare("UPDATE payouts SET state = 'paid' WHERE id = ?").run(id)
    reached('inside the transaction')
    res.writeHead(201, { 'Content-Type': 'text/plain' }).end(id)
  })
}

function reached(here: string): void {
  if (here === point) process.kill(process.pid, 'SIGKILL')
}

server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
