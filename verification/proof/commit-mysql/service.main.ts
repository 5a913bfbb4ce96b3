// A service whose effects commit with their records on MySQL, in a process of its own. Its settings come as an argument.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import express from 'express'
import { createPool, type Pool, type PoolConnection, type RowDataPacket } from 'mysql2/promise'
import { type IdempotencyContext, idempotency, singleTenant } from 'once-per-key'
import { MySqlStore } from 'once-per-key/mysql'
import { actor, type Effects } from '../commit/acts.js'
import { CLAIMS_NOTHING, LEASE_MS, type Order } from '../commit/order.js'
import { answerBeats } from '../limits/pulse.js'
import { COMMITS_NOTHING, type ServiceSettings } from './service-settings.js'

answerBeats()
const { commandsUrl, applicationUrl }: ServiceSettings = JSON.parse(process.argv[2] ?? '')
const application = open(applicationUrl, 8, 'SET SESSION innodb_lock_wait_timeout = 1')
const transactions = application
const store = new MySqlStore({ pool: open(commandsUrl, 3), transactions, sweeps: false })
const careless = new MySqlStore({ pool: open(commandsUrl, 3, 'START TRANSACTION'), transactions, sweeps: false })

const effects: Effects<PoolConnection> = {
  transaction: (run, work, isolation) => store.transaction(run, work, isolation === null ? undefined : { isolation }),
  async seen({ key }) {
    const [rows] = await application.query<RowDataPacket[]>('SELECT id AS seen FROM effects WHERE name = ?', [key])
    return rows[0]?.seen ?? null
  },
  async write(tx, { key, attempt }) {
    const id = randomUUID()
    await (tx ?? application).query('INSERT INTO effects (name, id, attempt) VALUES (?, ?, ?)', [key, id, attempt])
    return id
  },
  takeOver: (tx, { key, attempt }) => tx.query('UPDATE effects SET attempt = ? WHERE name = ?', [attempt, key]),
  commit: async (tx) => {
    await tx.query('COMMIT')
    await tx.query('START TRANSACTION')
  },
}

const settings = {
  scope: singleTenant,
  required: true,
  leaseMs: LEASE_MS,
  maxRunMs: 3 * LEASE_MS,
  storeTimeoutMs: LEASE_MS / 4,
} as const
const claiming = idempotency({ ...settings, store })
const claimingNothing = idempotency({ ...settings, store, effects: 'in-transaction' })
const committingNothing = idempotency({ ...settings, store: careless })
const app = express()
app.post('/effects', express.json(), inOneOfItsWays, haveEffect)
app.post('/scenes', express.json(), inOneOfItsWays, actor(effects))
app.use((_error: unknown, _req: express.Request, res: express.Response, next: express.NextFunction) => {
  if (res.headersSent) next()
  else res.status(500).end()
})

/** All serve the same keys. */
function inOneOfItsWays(req: express.Request, res: express.Response, next: express.NextFunction): void {
  if (req.get(COMMITS_NOTHING) !== undefined) committingNothing(req, res, next)
  else if (req.get(CLAIMS_NOTHING) !== undefined) claimingNothing(req, res, next)
  else claiming(req, res, next)
}

async function haveEffect(req: express.Request, res: express.Response): Promise<void> {
  const run = req.idempotency as IdempotencyContext
  const { reserves, thinksMs, pauseMs, isolation }: Order = req.body
  const reserved = () => store.step(run, 'reserve', (tx) => reserve(tx, run))
  // What became of a COMMIT without a reply, the same attempt asks again.
  if (reserves) await reserved().catch(reserved)
  await pause(thinksMs)
  const work = async (tx: PoolConnection) => {
    const id = await effects.write(tx, run)
    await pause(pauseMs)
    res.status(201).json({ id })
  }
  await effects.transaction(run, work, isolation)
}

async function reserve(tx: PoolConnection, { key }: IdempotencyContext): Promise<void> {
  await tx.query('INSERT INTO reservations (name) VALUES (?)', [key])
}

const server = createServer(app).listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
// Whoever started it has gone.
process.once('disconnect', () => process.exit(1))

function open(uri: string, connectionLimit: number, first?: string): Pool {
  const pool = createPool({ uri, connectionLimit, connectTimeout: LEASE_MS / 4 })
  if (first !== undefined) pool.on('connection', (connection) => void connection.query(first))
  return pool
}
