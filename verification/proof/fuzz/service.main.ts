// The servers under fire, in a process of their own. What happens goes to its parent, as messages.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Gate, gate } from '../../../test/support/gate.js'
import { answerBeats } from '../limits/pulse.js'
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

/** Who waits for the end longer than this is told what it hangs on. */
const WORDS_MS = 8_000

let isDone = false

answerBeats()
process.on('message', (order: Order | string) => {
  if (typeof order === 'string') return
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
  const pending = new Set(SERVERS.flatMap((name) => [`${name} is open`, `${name} is not idle`]))
  const ends = SERVERS.map(async (name, i) => {
    await new Promise((resolve) => servers[i]?.close(resolve))
    pending.delete(`${name} is open`)
  })
  tell({ type: 'closing' })
  const words = setTimeout(() => console.error([...pending].join(', '), process.getActiveResourcesInfo()), WORDS_MS)
  await Promise.all(SERVERS.map((name, i) => apps[i]?.idle().then(() => pending.delete(`${name} is not idle`))))
  await Promise.all(ends)
  clearTimeout(words)
  isDone = true
  tell({ type: 'closed', account: journal.account(), resources: process.getActiveResourcesInfo() })
  process.disconnect()
}

function tell(message: Told): void {
  if (process.connected) process.send?.(message)
}
