import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MemoryStore } from 'once-per-key/memory'
import { pino } from 'pino'
import { createApp } from './app.js'
import { greeting } from './greeting.js'
import { gracefulShutdown } from './shutdown.js'

// Synchronous: the last lines before an exit come out, and in order.
const logger = pino(pino.destination({ sync: true }))
const port = portOf(process.env.PORT || '3000')
const { app, idle } = createApp({ store: new MemoryStore(), logger })
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
  await shutDown()
  logger.info('stopped')
  process.exit(0)
}

process.on('SIGTERM', stop)
process.on('SIGINT', stop)

function portOf(given: string): number {
  const port = /^\d{1,5}$/.test(given) ? Number(given) : Number.NaN
  if (!(port <= 65_535)) refuse(`PORT must be a whole number from 0 to 65535; seen: ${JSON.stringify(given)}.`)
  return port
}

function refuse(message: string): never {
  console.error(message)
  process.exit(1)
}
