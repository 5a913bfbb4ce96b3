// The payments example in a process of its own, with a journal. Its settings come as an argument.
import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sealed } from 'once-per-key/sealed'
import { pino } from 'pino'
import { createApp } from '../../../examples/payments/app.js'
import { openRedis } from '../../../examples/payments/redis.js'
import { gracefulShutdown } from '../../../examples/payments/shutdown.js'
import { afterBeats, answerBeats } from '../limits/pulse.js'
import { openCluster, openSentinels } from './cluster-backing.js'
import { openJournal } from './journal.js'
import { type Handled, journaledLedger } from './journaled-ledger.js'
import { journaledStore } from './journaled-store.js'
import { ORDERS, ordersApp } from './orders.js'
import type { ServiceSettings } from './service-settings.js'

/** Far more than what is left needs for its end. */
const MOST_BEATS_LEFT = 100

answerBeats()
const settings: ServiceSettings = JSON.parse(process.argv[2] ?? '')
const { name, journal, access, redisPorts, sealingKey, leaseMs, unknownOutcome, forgetful } = settings
const note = openJournal(journal, name)
// What the example logs, events among it, is noted too.
const logger = pino({ level: 'debug', base: null, timestamp: false }, { write: (line) => tell(line) })

const backing = await open()
const store = sealingKey === null ? backing.store : sealed(backing.store, { keys: [sealingKey] })
const requests = new AsyncLocalStorage<Handled>()
const journaled = journaledStore(store, note)
const orders = ordersApp({ store: journaled, leaseMs, unknownOutcome }, note)
const { app, idle } = createApp({
  ...backing,
  store: journaled,
  ledger: journaledLedger(backing.ledger, note, () => requests.getStore(), new Set(forgetful)),
  logger,
  leaseMs,
  unknownOutcome,
  host: 'test', // As the proof's clients call it.
})
const server = createServer((req, res) => {
  if (req.url === ORDERS) orders.app(req, res)
  else requests.run(req as Handled, () => app(req, res))
})
const shutDown = gracefulShutdown(server, async () => {
  await Promise.all([idle(), orders.idle()])
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))

// As the example's main does, but for its last line: nothing may be left that keeps the process alive.
process.once('SIGTERM', async () => {
  await shutDown()
  await backing.close()
  process.disconnect()
})
// Whoever started it has gone.
process.once('disconnect', () => afterBeats(MOST_BEATS_LEFT, giveUp))

function giveUp(): void {
  console.error(`${name} was kept alive by: ${process.getActiveResourcesInfo().join(', ')}`)
  process.exit(1)
}

function open() {
  switch (access) {
    case 'a single Redis':
      return openRedis({ host: '127.0.0.1', port: redisPorts[0] ?? 0, db: 0 }, logger)
    case 'a cluster':
      return openCluster(redisPorts)
    case 'sentinels':
      return openSentinels(redisPorts)
  }
}

function tell(line: string): void {
  const { msg, scope, key, attempt } = JSON.parse(line)
  note({ what: 'told', line: { msg, scope, key, attempt } })
}
