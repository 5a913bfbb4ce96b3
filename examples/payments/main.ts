import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { MemoryStore } from 'once-per-key/memory'
import { pino } from 'pino'
import { createApp } from './app.js'
import { greeting } from './greeting.js'
import { memoryLedger } from './ledger.js'
import { SettingInvalid, type Settings, settingsOf } from './settings.js'
import { gracefulShutdown } from './shutdown.js'
import { webhookSender } from './webhook-sender.js'

// Synchronous: the last lines before an exit come out, and in order.
const logger = pino(pino.destination({ sync: true }))
const { port, redis, firstPauseMs, ...rest } = readSettings()
// Without a Redis, nothing of it is loaded.
const backing = redis && (await (await import('./redis.js')).openRedis(redis, logger))
const ledger = backing?.ledger ?? memoryLedger()
const webhooks = webhookSender({ ledger, logger, ...(firstPauseMs && { firstPauseMs }) })
const pageFolder = fileURLToPath(new URL('playground/page', import.meta.url))
const { app, close, idle } = createApp({
  store: new MemoryStore(),
  ...backing,
  ...rest,
  ledger,
  webhooks,
  pageFolder,
  logger,
})
const server = createServer(app)
const shutDown = gracefulShutdown(server, idle)

server.once('error', (error: NodeJS.ErrnoException) => {
  const reason = error.code === 'EADDRINUSE' ? 'it is in use' : error.message
  refuse(`Cannot listen on port ${port}: ${reason}. Set PORT to another one; PORT=0 picks one that is free.`)
})

server.listen(port, () => {
  console.log(greeting(`http://localhost:${(server.address() as AddressInfo).port}`))
})

let stopping = false

async function stop(signal: string): Promise<void> {
  if (stopping) process.exit(1)
  stopping = true
  logger.info({ signal }, 'stopping')
  close()
  if (!(await shutDown())) logger.warn('some keys were not completed or released: their leases will end')
  const pending = await webhooks.stop()
  if (pending > 0) logger.warn({ pending }, 'webhook deliveries are pending, and lost')
  await backing?.close()
  logger.info('stopped')
  process.exit(0)
}

process.on('SIGTERM', stop)
process.on('SIGINT', stop)

function readSettings(): Settings {
  try {
    return settingsOf(process.env)
  } catch (error) {
    if (error instanceof SettingInvalid) refuse(error.message)
    throw error
  }
}

function refuse(message: string): never {
  console.error(message)
  process.exit(1)
}
