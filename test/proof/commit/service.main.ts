// A service whose effects commit with their records, in a process of its own. Its settings come as an argument.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import express from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import { PostgresStore } from 'once-per-key/postgres'
import { sealed } from 'once-per-key/sealed'
import { Pool, type PoolConfig } from 'pg'
import { LEASE_MS, type Order, type ServiceSettings } from './order.js'

const { commandsUrl, applicationUrl, sealingKey }: ServiceSettings = JSON.parse(process.argv[2] ?? '')
const application = open({ connectionString: applicationUrl, max: 8 })
const commands = open({ connectionString: commandsUrl, max: 3 })
const store = new PostgresStore({ pool: commands, transactions: application, sweeps: false })

const settings = {
  scope: singleTenant,
  required: true,
  leaseMs: LEASE_MS,
  maxRunMs: 3 * LEASE_MS,
  storeTimeoutMs: LEASE_MS / 4,
} as const
// An answer that is not sealed is replayed, so that clients come to their end, and the look into the database finds it.
const sealedStore = sealed(store, { keys: [sealingKey], unsealedMayBeReplayed: true })
const app = express()
app.post('/effects', express.json(), idempotency({ ...settings, store }), haveEffect)
app.post('/sealed', express.json(), idempotency({ ...settings, store: sealedStore }), haveEffect)
app.use((_error: unknown, _req: express.Request, res: express.Response, next: express.NextFunction) => {
  if (res.headersSent) next()
  else res.status(500).end()
})

async function haveEffect(req: express.Request, res: express.Response): Promise<void> {
  const run = req.idempotency
  const { reserves, thinksMs, pauseMs, staysOpen, isolation }: Order = req.body
  if (run === undefined) throw new Error('The request had no key.')
  const id = randomUUID()
  if (reserves) {
    await store.step(run, (tx) =>
      tx.query('INSERT INTO reservations VALUES ($1) ON CONFLICT (key) DO NOTHING', [run.key]),
    )
  }
  await pause(thinksMs)
  await store.transaction(
    run,
    async (tx) => {
      if (staysOpen) await tx.query('SET LOCAL idle_in_transaction_session_timeout = 0')
      await tx.query('INSERT INTO effects VALUES ($1, $2, $3)', [run.key, id, run.attempt])
      await pause(pauseMs)
      res.status(201).json({ id })
    },
    isolation === null ? undefined : { isolation },
  )
}

const server = createServer(app).listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
// Whoever started it has gone.
process.once('disconnect', () => process.exit(1))

function open(config: PoolConfig): Pool {
  return new Pool({ connectionTimeoutMillis: LEASE_MS / 4, ...config }).on('error', () => {})
}
