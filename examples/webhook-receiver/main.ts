import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { standardWebhooks, type WebhookEvent, webhookReceiver } from 'once-per-key/webhooks'

/** One line for each event that is handled, and one for each decision. */
const log = (line: object) => console.log(JSON.stringify(line, (_name, value) => wordsOf(value)))
/** JSON shows nothing of an error. */
const wordsOf = (value: unknown) => (value instanceof Error ? value.message : value)

const { PORT, HOST, REDIS_URL, WEBHOOK_SECRET, DEMO_LEASE_MS, DEMO_WORK_MS, DEMO_ANSWER_MS } = process.env
const leaseMs = Number(DEMO_LEASE_MS || 30_000)
const { store, close } = await openStore()

/** What a receiver does with an event. */
async function handle({ id, type }: WebhookEvent): Promise<void> {
  // Some events take longer than others.
  await delay(Number(DEMO_WORK_MS || 0) * (type === 'mandate_setup_started' ? 4 : 1))
  log({ msg: 'event', type, id })
}

const receiver = webhookReceiver({
  store,
  source: 'payments',
  // Without a secret, whoever finds the address can send events.
  verify: WEBHOOK_SECRET ? standardWebhooks({ secrets: [WEBHOOK_SECRET] }) : false,
  on: { merchant_updated: handle, mandate_setup_started: handle },
  leaseMs,
  storeTimeoutMs: Math.min(2_000, Math.floor(leaseMs / 4)),
  onEvent: ({ type, ...facts }) => log({ msg: type, ...facts }),
})

const server = createServer((req, res) => {
  if (DEMO_ANSWER_MS) answerLate(res, Number(DEMO_ANSWER_MS))
  receiver(req, res)
})
server.listen(Number(PORT || 3_001), HOST || '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  log({ msg: 'listening', url: `http://localhost:${port}`, store: REDIS_URL ? 'redis' : 'memory' })
})

async function stop(): Promise<void> {
  await new Promise((resolve) => {
    server.close(resolve)
    server.closeIdleConnections()
  })
  await receiver.idle()
  await close()
}

process.once('SIGTERM', stop).once('SIGINT', stop)

/** A demo of a slow network: a crash takes answers along that were on their way, and their events are sent again. */
function answerLate(res: ServerResponse, ms: number): void {
  const end = res.end.bind(res) as (...args: unknown[]) => ServerResponse
  res.end = (...args: unknown[]) => {
    setTimeout(() => end(...args), ms)
    return res
  }
}

async function openStore(): Promise<{ readonly store: Store; close(): Promise<unknown> }> {
  // Memory does not survive a restart: an event that is sent again after one is handled again.
  if (!REDIS_URL) return { store: new MemoryStore(), close: async () => {} }
  const [{ Redis }, { RedisStore }] = await Promise.all([import('ioredis'), import('once-per-key/redis')])
  const client = new Redis(REDIS_URL, { lazyConnect: true, maxRetriesPerRequest: 0 })
  client.on('error', ({ message }: Error) => log({ msg: 'redis', reason: message }))
  await client.connect()
  return { store: new RedisStore({ client }), close: () => client.quit() }
}
