// A service whose effects commit with their records, in a process of its own. Its settings come as an argument.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import express from 'express'
import { type IdempotencyContext, idempotency, singleTenant } from 'once-per-key'
import { sealed } from 'once-per-key/sealed'
import { answerBeats } from '../limits/pulse.js'
import { createActor } from './acts.js'
import { DIALECTS, type TransactionOptions, type TransactionStore, type Tx } from './dialect.js'
import { CLAIMS_NOTHING, CLIENT, type ClientName, LEASE_MS, type Order, type ServiceSettings } from './order.js'

answerBeats()
const given: ServiceSettings = JSON.parse(process.argv[2] ?? '')
const dialect = await DIALECTS[given.dialect]()
const { createStore, query, firsts } = dialect
const open = (uri: string, size: number, first?: string) => dialect.open(uri, size, LEASE_MS / 4, first)
const application = open(given.applicationUri, 8, firsts.application)
const commands = open(given.commandsUri, 3)
const journal = open(given.journalUri, 4, firsts.journal)
const store = createStore(commands, application)
const hasty = createStore(commands, { run: dialect.run, transaction: openHastily })
const EFFECT = 'INSERT INTO effects (name, id, attempt, called) VALUES (?, ?, ?, ?)'
const CALL = 'INSERT INTO calls (name, id, attempt, told) VALUES (?, ?, ?, ?)'
const careless = createStore(open(given.commandsUri, 3, 'BEGIN'), application)
const pooled = given.pooledUri === undefined ? store : createPooledStore(given.pooledUri)

const settings = {
  scope: singleTenant,
  required: true,
  leaseMs: LEASE_MS,
  maxRunMs: 3 * LEASE_MS,
  storeTimeoutMs: LEASE_MS / 4,
} as const
// An answer that is not sealed is replayed, so that clients come to their end, and the look into the database finds it.
const sealedStore = sealed(store, { keys: [given.sealingKey], unsealedMayBeReplayed: true })
const app = express()
const clients: Readonly<Record<ClientName, ReturnType<typeof createClient>>> = {
  usual: createClient(store),
  pooled: createClient(pooled),
  hasty: createClient(hasty),
  careless: createClient(careless),
}
app.post('/effects', express.json(), protect, haveEffect)
app.post(
  '/scenes',
  express.json(),
  protect,
  createActor(dialect, application, (req) => clientOf(req).store),
)
app.post('/mistakes', express.json(), idempotency({ ...settings, store: hasty }), haveEffectAfterMistake)
const patient = { ...settings, maxRunMs: 60 * LEASE_MS }
app.post('/effects/patient', express.json(), idempotency({ ...patient, store }), haveEffect)
app.post('/mistakes/patient', express.json(), idempotency({ ...patient, store: hasty }), haveEffectAfterMistake)
app.post('/sealed', express.json(), idempotency({ ...settings, store: sealedStore }), haveEffect)
app.use((_error: unknown, _req: express.Request, res: express.Response, next: express.NextFunction) => {
  if (res.headersSent) next()
  else res.status(500).end()
})

function createPooledStore(uri: string): TransactionStore {
  const pool = open(uri, 8)
  return createStore(pool, pool)
}

function createClient(store: TransactionStore) {
  const claiming = idempotency({ ...settings, store })
  return { store, claiming, claimingNothing: idempotency({ ...settings, store, effects: 'in-transaction' }) }
}

function clientOf(req: express.Request): (typeof clients)[ClientName] {
  return clients[(req.get(CLIENT) ?? 'usual') as ClientName]
}

/** All serve the same keys. */
function protect(req: express.Request, res: express.Response, next: express.NextFunction): void {
  const { claiming, claimingNothing } = clientOf(req)
  const protection = req.get(CLAIMS_NOTHING) === undefined ? claiming : claimingNothing
  protection(req, res, next)
}

async function haveEffect(req: express.Request, res: express.Response): Promise<void> {
  const run = runOf(req)
  const order: Order = req.body
  const { reserves, calls, thinksMs, isolation } = order
  const { store } = clientOf(req)
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
      await query(tx, dialect.writesNothingSql)
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
    await query(journal, CALL, [run.key, id, run.attempt, previousOutcome])
    return { id }
  })
  return id
}

/** It must be refused: its command would wait for the row that this transaction has locked. */
async function takeStepInside(tx: Tx, run: IdempotencyContext): Promise<string> {
  const code = await run
    .step('inside', () => 1)
    .then(
      () => 'none',
      (error) => error.code,
    )
  await query(tx, 'SELECT 1') // Otherwise the transaction may be over, and then a step is none inside it.
  await query(journal, 'INSERT INTO inside (name, code) VALUES (?, ?)', [run.key, code])
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
  return async (tx: Tx): Promise<void> => {
    const id = randomUUID()
    if (staysOpen && dialect.staysOpenSql !== undefined) await query(tx, dialect.staysOpenSql)
    await query(tx, EFFECT, [run.key, id, run.attempt, call])
    limit?.abort(new Error('The transaction took too long.'))
    await pause(pauseMs)
    res.status(201).json({ id })
  }
}

async function reserve(tx: Tx, { key }: IdempotencyContext): Promise<void> {
  await query(tx, 'INSERT INTO reservations (name) VALUES (?)', [key])
}

function runOf(req: express.Request): IdempotencyContext {
  if (req.idempotency === undefined) throw new Error('The request had no key.')
  return req.idempotency
}

/** Does not wait for the work when the limit is reached: the connection is closed, and with it the transaction is rolled back. */
async function openHastily(work: (tx: Tx) => Promise<void>, { behind, limit }: TransactionOptions = {}): Promise<void> {
  await behind
  const tx = await dialect.connect(application)
  tx.on('error', ignore)
  let isGood = false
  try {
    await query(tx, 'BEGIN')
    await Promise.race([work(tx), ...(limit === undefined ? [] : [rejectAt(limit)])])
    await query(tx, 'COMMIT')
    isGood = true
  } finally {
    if (isGood) tx.off('error', ignore)
    dialect.release(tx, isGood)
  }
}

function rejectAt(limit: AbortSignal): Promise<never> {
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
