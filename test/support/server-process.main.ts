// A service in a process of its own. Its settings come as an argument; what happens goes to its parent, as messages.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import { RedisStore } from 'once-per-key/redis'
import { LIBRARIES } from './default-clients.js'
import type { Message, Settings } from './server-process.js'

const settings: Settings = JSON.parse(process.argv[2] ?? '')
const library = LIBRARIES.find(({ name }) => name === settings.library)
if (library === undefined) throw new Error(`No library of this name: ${settings.library}`)
const { client, quit } = await library.open(settings.redisPort)

const once = idempotency({
  store: new RedisStore({ client }),
  scope: singleTenant,
  ...settings.options,
  onEvent: ({ type }) => tell({ type: 'event', event: type }),
})

const app = express()
app.post('/pay', once, async (req, res) => {
  if (req.idempotency === undefined) throw new Error('The request had no key.')
  const { attempt, previousOutcome, signal } = req.idempotency
  tell({ type: 'run', attempt, previousOutcome })
  if (settings.waits) {
    signal.addEventListener('abort', () => tell({ type: 'aborted' }))
    await new Promise<void>((resolve) => process.once('message', () => resolve()))
    tell({ type: 'woken', signalHasAborted: req.idempotency.signal.aborted })
  }
  res.status(201).json({ paidBy: settings.name, attempt })
})
const server = createServer(app).listen(0, '127.0.0.1', () => {
  tell({ type: 'listening', port: (server.address() as AddressInfo).port })
})
process.on('SIGTERM', () => void shutDown())

/** As the README says. From here on only the store's client keeps the process alive. */
async function shutDown(): Promise<void> {
  process.channel?.unref()
  server.close()
  tell({ type: 'closing' })
  await once.idle()
  tell({ type: 'idle' })
  await quit()
}

function tell(message: Message): void {
  process.send?.(message)
}
