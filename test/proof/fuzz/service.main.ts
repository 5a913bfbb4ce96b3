// The servers under fire, in a process of their own. What happens goes to its parent, as messages.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Gate, gate } from '../../support/gate.js'
import { createApp } from './apps.js'
import { createJournal } from './journal.js'
import { SERVERS } from './mounts.js'
import type { Order, Told } from './service.js'

const journal = createJournal((check, request, story) => tell({ type: 'violated', check, request, story }))
const gates = new Map<string, Gate>()
const apps = SERVERS.map((server) =>
  createApp(server, { journal, began, released: (request) => gateOf(request).opened }),
)
const servers = await Promise.all(apps.map(({ listener }) => listening(listener)))
const [express4, express5, http] = servers.map((server) => (server.address() as AddressInfo).port)

let isDone = false

process.on('message', (order: Order) => {
  if (order.type === 'release') gateOf(order.request).open()
  else void close()
})
process.on('disconnect', () => {
  if (!isDone) process.exit(1) // Nobody is left to tell.
})
tell({ type: 'ready', ports: { express4: express4 as number, express5: express5 as number, http: http as number } })

function listening(listener: Parameters<typeof createServer>[1]): Promise<Server> {
  const server = createServer({ keepAliveTimeout: 60_000 }, listener)
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}

function gateOf(request: string): Gate {
  const known = gates.get(request) ?? gate()
  gates.set(request, known)
  return known
}

/** Only those who wait for a gate are told. */
function began(request: string, closed: Promise<void>): void {
  if (!request.startsWith('gate')) return
  tell({ type: 'began', request })
  void closed.then(() => tell({ type: 'left', request }))
}

/** As the README says. From here on nothing may keep the process alive. */
async function close(): Promise<void> {
  const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)))
  tell({ type: 'closing' })
  await Promise.all(apps.map(({ idle }) => idle()))
  await Promise.all(closed)
  isDone = true
  tell({ type: 'closed', account: journal.account(), resources: process.getActiveResourcesInfo() })
  process.disconnect()
}

function tell(message: Told): void {
  if (process.connected) process.send?.(message)
}
