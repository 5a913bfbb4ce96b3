import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { createApp } from './app.js'
import { BackingUnfit, openBacking } from './backing.js'
import { greeting } from './greeting.js'
import { originAt } from './own-host.js'
import { isLoopback } from './reachable-address.js'
import { SettingInvalid, settingsOf } from './settings.js'
import { gracefulShutdown } from './shutdown.js'
import { webhookSender } from './webhook-sender.js'

// Synchronous: the last lines before an exit come out, and in order.
const logger = pino(pino.destination({ sync: true }))
const settings = await orRefuse(() => settingsOf(process.env))
const { port, host, firstPauseMs, mayReachLoopback = false, leaseMs } = settings
const { close: closeBacking, ...backing } = await orRefuse(() => openBacking(settings, logger))
const { ledger } = backing
const webhooks = webhookSender({ ledger, logger, mayReachLoopback, ...(firstPauseMs && { firstPauseMs }) })
const pageFolder = fileURLToPath(new URL('playground/page', import.meta.url))
const { app, close, idle } = createApp({
  ...backing,
  ...(leaseMs && { leaseMs }),
  host,
  webhooks,
  pageFolder,
  logger,
})
const server = createServer(app)
const shutDown = gracefulShutdown(server, idle)

server.once('error', (error: NodeJS.ErrnoException) => {
  if (['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL'].includes(error.code ?? '')) {
    refuse(`Cannot listen on ${host}: ${error.code}. Set HOST to an address of this machine, or leave it out.`)
  }
  const reason = error.code === 'EADDRINUSE' ? 'it is in use' : error.message
  refuse(`Cannot listen on port ${port}: ${reason}. Set PORT to another one; PORT=0 picks one that is free.`)
})

server.listen(port, host, () => {
  const { port, address } = server.address() as AddressInfo
  const isOpen = !isLoopback(address)
  const isLasting = [settings.redis, settings.databaseUrl, settings.sqliteFile].some((place) => place !== undefined)
  console.log(greeting({ origin: originAt(host, port), isOpen, mayReachLoopback, isLasting }))
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
  await closeBacking()
  logger.info('stopped')
  process.exit(0)
}

process.on('SIGTERM', stop)
process.on('SIGINT', stop)

async function orRefuse<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof SettingInvalid || error instanceof BackingUnfit) refuse(error.message)
    throw error
  }
}

function refuse(message: string): never {
  console.error(message)
  process.exit(1)
}
