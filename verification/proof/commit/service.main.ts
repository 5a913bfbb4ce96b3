// A service whose effects commit with their records, in a process of its own. Its settings come as an argument.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import express from 'express'
import { type IdempotencyContext, idempotency, singleTenant } from 'once-per-key'
import { PostgresStore } from 'once-per-key/postgres'
import { sealed } from 'once-per-key/sealed'
import { Pool, type PoolClient, type PoolConfig } from 'pg'
import { answerBeats } from '../limits/pulse.js'
import { actor, type Effects } from './acts.js'
import { CLAIMS_NOTHING, LEASE_MS, type Order, type ServiceSettings, THROUGH_POOLER } from './order.js'

answerBeats()
const { commandsUrl, applicationUrl, pooledUrl, journalUrl, sealingKey }: ServiceSettings = JSON.parse(
  process.argv[2] ?? '',
)
const application = open({ connectionString: applicationUrl, max: 8 })
const commands = open({ connectionString: commandsUrl, max: 3 })
const journal = open({ connectionString: journalUrl, max: 4, options: '-c synchronous_commit=on' })
const store = new PostgresStore({ pool: commands, transactions: application, sweeps: false })
const pooledApplication = open({ connectionString: pooledUrl, max: 8 })
const pooled = new PostgresStore({ pool: pooledApplication, transactions: pooledApplication, sweeps: false })
const hasty = new PostgresStore({
  pool: commands,
  sweeps: false,
  transactions: { run: (tx: PoolClient, { text, values }) => tx.query(text, [...values]), transaction: openHastily },
})

const effects: Effects<PoolClient> = {
  transaction: (run, work, isolation) => store.transaction(run, work, isolation === null ? undefined : { isolation }),
  async seen({ key }) {
    const { rows } = await application.query('SELECT id AS seen FROM effects WHERE key = $1', [key])
    return rows[0]?.seen ?? null
  },
  async write(tx, { key, attempt }) {
    const id = randomUUID()
    await (tx ?? application).query('INSERT INTO effects VALUES ($1, $2, $3, NULL)', [key, id, attempt])
    return id
  },
  takeOver: (tx, { key, attempt }) => tx.query('UPDATE effects SET attempt = $2 WHERE key = $1', [key, attempt]),
  commit: async (tx) => {
    await tx.query('COMMIT')
    await tx.query('BEGIN')
  },
}

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
const [directly, throughPooler] = [waysOf(store), waysOf(pooled)]
app.post('/effects', express.json(), inOneOfFourWays, haveEffect)
app.post('/scenes', express.json(), inOneOfFourWays, actor(effects))
app.post('/mistakes', express.json(), idempotency({ ...settings, store: hasty }), haveEffectAfterMistake)
const patient = { ...settings, maxRunMs: 60 * LEASE_MS }
app.post('/effects/patient', express.json(), idempotency({ ...patient, store }), haveEffect)
app.post('/mistakes/patient', express.json(), idempotency({ ...patient, store: hasty }), haveEffectAfterMistake)
app.post('/sealed', express.json(), idempotency({ ...settings, store: sealedStore }), haveEffect)
app.use((_error: unknown, _req: express.Request, res: express.Response, next: express.NextFunction) => {
  if (res.headersSent) next()
  else res.status(500).end()
})

function waysOf(store: PostgresStore<Pool>) {
  const claiming = idempotency({ ...settings, store })
  return { claiming, claimingNothing: idempotency({ ...settings, store, effects: 'in-transaction' }) }
}

/** All serve the same keys. */
function inOneOfFourWays(req: express.Request, res: express.Response, next: express.NextFunction): void {
  const { claiming, claimingNothing } = req.get(THROUGH_POOLER) === undefined ? directly : throughPooler
  const protection = req.get(CLAIMS_NOTHING) === undefined ? claiming : claimingNothing
  protection(req, res, next)
}

function storeOf(req: express.Request): typeof store {
  return req.get(THROUGH_POOLER) === undefined ? store : pooled
}

async function haveEffect(req: express.Request, res: express.Response): Promise<void> {
  const run = runOf(req)
  const order: Order = req.body
  const { reserves, calls, thinksMs, isolation } = order
  const store = storeOf(req)
  const reserved = () => store.step(run, 'reserve', (tx) => reserve(tx, run))
  // What became of a COMMIT without a reply, the same attempt asks again.
  if (reserves) await reserved().catch(reserved)
  const call = calls ? await callSomebody(run) : null
  await pause(thinksMs)
  await store.transaction(run, workOf(run, order, res, call), isolation === null ? undefined : { isolation })
}

/** What an application easily does wrong in its first transaction, and then the right one. */
async function haveEffectAfterMistake(req: express.Request, res: express.Response): Promise<void> {
  const run = runOf(req)
  const order: Order = req.body
  const { reserves, calls, thinksMs, way } = order
  if (reserves) await hasty.step(run, 'reserve', (tx) => reserve(tx, run))
  const call = calls ? await callSomebody(run) : null
  await pause(thinksMs)
  if (way === 'step inside') await hasty.step(run, 'outer', (tx) => takeStepInside(tx, run))
  if (way === 'answers before BEGIN' && run.attempt === 1) return failBeforeBegin(run, order, res, call)
  if (way === 'tries again' || (way === 'lets go' && run.attempt === 1)) {
    const limit = new AbortController()
    const rejected = hasty.transaction(run, workOf(run, order, res, call, limit), { limit: limit.signal })
    if (way === 'lets go') return void rejected.catch(() => {})
    await rejected.catch(() => {})
  }
  if (way === 'writes nothing') {
    const isCommitted = hasty.transaction(run, async (tx) => {
      await tx.query('UPDATE effects SET attempt = attempt WHERE key IS NULL')
      res.status(201).json({ id: randomUUID() })
      return true
    })
    if (await isCommitted.catch(() => false)) return
  }
  const work = workOf(run, order, res, call)
  await hasty.transaction(run, async (tx) => {
    if (way === 'step inside') await takeStepInside(tx, run)
    await work(tx)
  })
}

/** What a step has called somebody else for. Each call is written down, with what it was told. */
async function callSomebody(run: IdempotencyContext): Promise<string> {
  const { id } = await run.step('call', async ({ previousOutcome }) => {
    const id = randomUUID()
    await journal.query('INSERT INTO calls VALUES ($1, $2, $3, $4)', [run.key, id, run.attempt, previousOutcome])
    return { id }
  })
  return id
}

/** It must be refused: its command would wait for the row that this transaction has locked. */
async function takeStepInside(tx: PoolClient, run: IdempotencyContext): Promise<string> {
  const code = await run
    .step('inside', () => 1)
    .then(
      () => 'none',
      (error) => error.code,
    )
  await tx.query('SELECT 1') // Otherwise the transaction may be over, and then a step is none inside it.
  await journal.query('INSERT INTO inside VALUES ($1, $2)', [run.key, code])
  return code
}

/** The connection comes when the client has been answered, or has left. */
function failBeforeBegin(run: IdempotencyContext, order: Order, res: express.Response, call: string | null): void {
  const isOver = res.closed ? Promise.resolve() : once(res, 'close')
  hasty.transaction(run, workOf(run, order, res, call), { behind: isOver }).catch(() => {})
  res.status(503).end()
}

/** `limit`: is reached as soon as the effect is written. */
function workOf(
  run: IdempotencyContext,
  { staysOpen, pauseMs }: Order,
  res: express.Response,
  call: string | null,
  limit?: AbortController,
) {
  return async (tx: PoolClient): Promise<void> => {
    const id = randomUUID()
    if (staysOpen) await tx.query('SET LOCAL idle_in_transaction_session_timeout = 0')
    await tx.query('INSERT INTO effects VALUES ($1, $2, $3, $4)', [run.key, id, run.attempt, call])
    limit?.abort(new Error('The transaction took too long.'))
    await pause(pauseMs)
    res.status(201).json({ id })
  }
}

async function reserve(tx: PoolClient, { key }: IdempotencyContext): Promise<void> {
  await tx.query('INSERT INTO reservations VALUES ($1)', [key])
}

function runOf(req: express.Request): IdempotencyContext {
  if (req.idempotency === undefined) throw new Error('The request had no key.')
  return req.idempotency
}

interface Opening {
  /** Behind this a connection is free. */
  readonly behind?: Promise<unknown>
  readonly limit?: AbortSignal
}

/** Does not wait for the work when the limit is reached: the connection is closed, and with it the transaction is rolled back. */
async function openHastily(work: (tx: PoolClient) => Promise<void>, { behind, limit }: Opening = {}): Promise<void> {
  await behind
  const tx = await application.connect()
  tx.on('error', ignore)
  let isGood = false
  try {
    await tx.query('BEGIN')
    await Promise.race([work(tx), ...(limit === undefined ? [] : [rejectionOf(limit)])])
    await tx.query('COMMIT')
    isGood = true
  } finally {
    if (isGood) tx.off('error', ignore)
    tx.release(!isGood)
  }
}

function rejectionOf(limit: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    limit.addEventListener('abort', () => reject(limit.reason))
  })
}

function ignore(): void {}

const server = createServer(app).listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
// Whoever started it has gone.
process.once('disconnect', () => process.exit(1))

function open(config: PoolConfig): Pool {
  return new Pool({ connectionTimeoutMillis: LEASE_MS / 4, ...config }).on('error', () => {})
}
