import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MemoryStore } from 'once-per-key/memory'
import { pino } from 'pino'
import { onTestFinished, vi } from 'vitest'
import { createApp } from '../../examples/payments/app.js'
import { memoryLedger } from '../../examples/payments/ledger.js'
import { type WebhookSenderOptions, webhookSender } from '../../examples/payments/webhook-sender.js'
import type { Ground, Sent } from './payments-service.js'
import { send } from './payments-service.js'

type Times = Pick<WebhookSenderOptions, 'firstPauseMs' | 'timeLimitMs' | 'mayReachLoopback'>

/** The example with its webhooks, for one test. */
export async function startWithWebhooks(
  { store = new MemoryStore(), ledger = memoryLedger() }: Ground = {},
  times: Times = { firstPauseMs: 1 },
) {
  const log: Record<string, unknown>[] = []
  const logger = pino({}, { write: (line: string) => void log.push(JSON.parse(line)) })
  const sender = webhookSender({ ledger, logger, mayReachLoopback: true, ...times })
  const server = createServer(createApp({ store, ledger, logger, webhooks: sender }).app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  async function close(): Promise<void> {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await sender.stop()
  }
  onTestFinished(close)

  const post = (path: string, body?: unknown, sent: Sent = {}) =>
    send(origin + path, { ...(body !== undefined && { body }), ...sent })

  return {
    log,
    sender,
    post,
    async subscribe(url: string, over: object = {}, sent: Sent = {}): Promise<string> {
      const body = { url, events: ['merchant_updated'], ...over }
      return (await post('/api/service/webhook-subscription/create', body, sent)).json.id
    },
    fire: async (type = 'merchant_updated', sent: Sent = {}) =>
      (await post(`/demo/events/${type}`, undefined, sent)).json,
    /** Resolves once the log has that many such lines. */
    async logged(msg: string, count = 1): Promise<Record<string, unknown>[]> {
      const found = () => log.filter((line) => line.msg === msg)
      await vi.waitFor(
        () => {
          if (found().length < count) throw new Error(`${msg}: ${found().length} of ${count}`)
        },
        { interval: 2, timeout: 4_000 },
      )
      return found()
    },
  }
}
