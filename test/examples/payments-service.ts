import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Store } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { pino } from 'pino'
import { createApp } from '../../examples/payments/app.js'
import { type Books, type Ledger, memoryLedger } from '../../examples/payments/ledger.js'

/** The POST paths as the service's document lists them. */
export const PATHS = [
  '/api/service/beneficiary-payout/create',
  '/api/service/checkout/session/create',
  '/api/service/checkout/session/expire',
  '/api/service/customer/create',
  '/api/service/customer/delete',
  '/api/service/customer/update',
  '/api/service/fx/execute',
  '/api/service/order/create',
  '/api/service/order/expire',
  '/api/service/payout/create',
  '/api/service/refund/create',
  '/api/service/subaccount/create',
  '/api/service/webhook-subscription/create',
  '/api/service/webhook-subscription/delete',
  '/api/service/webhook-subscription/update',
] as const

export interface Sent {
  readonly body?: unknown
  /** In place of a body: what goes over the wire. */
  readonly raw?: string | Uint8Array<ArrayBuffer>
  readonly method?: string
  readonly apiKey?: string
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export interface Received {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  // biome-ignore lint/suspicious/noExplicitAny: what a client would read
  readonly json: any
}

export type Service = Awaited<ReturnType<typeof startService>>

/** What a service stands on; by default nothing is shared. */
export interface Ground {
  readonly store?: Store
  readonly ledger?: Ledger
}

const PAGE_FOLDER = fileURLToPath(new URL('../../examples/payments/playground/page', import.meta.url))

/** The example on a free port, with its log in memory and a gate in front of its ledger. */
export async function startService({ store = new MemoryStore(), ledger: inner = memoryLedger() }: Ground = {}) {
  const log: Record<string, unknown>[] = []
  const logger = pino({}, { write: (line: string) => void log.push(JSON.parse(line)) })
  const { ledger, hold, writes } = watchedLedger(inner)
  const { app, close, idle } = createApp({ store, logger, ledger, pageFolder: PAGE_FOLDER })
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  return {
    origin,
    log,
    hold,
    writes,
    close,
    idle,

    send: (path: string, sent: Sent = {}) => send(origin + path, sent),

    async sample(path: string, apiKey = 'demo_acme'): Promise<Record<string, unknown>> {
      const { json } = await send(`${origin}/operations`, { method: 'GET', apiKey })
      return json.find((operation: { path: string }) => operation.path === path).sample
    },

    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export async function send(url: string, sent: Sent): Promise<Received> {
  const { body, raw, method = 'POST', apiKey = 'demo_acme', key, headers, signal } = sent
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const response = await fetch(url, {
    method,
    headers: {
      ...(apiKey !== '' && { authorization: `Bearer ${apiKey}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(key !== undefined && { 'idempotency-key': key }),
      ...headers,
    },
    ...(content !== undefined && { body: content }),
    ...(signal && { signal }),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes, json: JSON.parse(bytes.toString() || 'null') }
}

/** A ledger that can hold a transaction back, and that counts what is written. */
function watchedLedger(inner: Ledger) {
  let writes = 0
  let gate = Promise.resolve()
  let enter = () => {}

  const passed = async (): Promise<void> => {
    const pause = gate
    gate = Promise.resolve() // The next one passes: a duplicate that is not kept from running must show, not hang.
    enter()
    await pause
  }
  const watched = (books: Books): Books => ({
    get: (kind, id) => books.get(kind, id),
    put(kind, entry) {
      writes++
      books.put(kind, entry)
    },
    delete(kind, id) {
      writes++
      books.delete(kind, id)
    },
  })
  const { withRecord } = inner
  const ledger: Ledger = {
    async transaction(merchantId, work) {
      await passed()
      return inner.transaction(merchantId, (books) => work(watched(books)))
    },
    ...(withRecord && {
      withRecord: {
        async answered(context, merchantId, work, answer) {
          await passed()
          return withRecord.answered(context, merchantId, (books) => work(watched(books)), answer)
        },
        async abandoned(merchantId, work, untilDeath) {
          await passed()
          return withRecord.abandoned(merchantId, work, untilDeath)
        },
      },
    }),
  }

  /** The next transaction waits until `open`. `entered`: it does. */
  function hold(): { readonly entered: Promise<void>; open(): void } {
    const entered = new Promise<void>((resolve) => {
      enter = resolve
    })
    let open = () => {}
    gate = new Promise((resolve) => {
      open = resolve
    })
    return { entered, open }
  }

  return { ledger, hold, writes: () => writes }
}
