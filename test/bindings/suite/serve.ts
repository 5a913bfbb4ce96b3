import type { IdempotencyEvent } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import type { BindingOptions } from 'once-per-key/testing'
import { onTestFinished } from 'vitest'
import { type Connection, connectTo, type RawReply, type RawRequest, request } from '../../support/raw-client.js'
import type { Framework, Handler, Reply, Started } from './framework.js'

export interface Serving extends Started {
  readonly events: IdempotencyEvent[]
  /** How often the handler ran. */
  runs(): number
  /** Sends a payout on a connection of its own, and resolves with its whole response. */
  send(sent?: Sent): Promise<RawReply>
  /** The same without waiting. */
  open(sent?: Sent): Connection
}

/** `POST /payouts` with the key `k` and a small JSON body, unless told otherwise; `key: null`: without the header. */
export interface Sent extends Omit<RawRequest, 'key' | 'body' | 'bytes'> {
  readonly key?: string | null
  readonly json?: unknown
  /** In place of JSON; its content type is among the headers. */
  readonly bytes?: Uint8Array | string
}

export interface Setting {
  readonly options?: Partial<BindingOptions>
  readonly onError?: (error: unknown) => Reply
  readonly isProtected?: boolean
}

/** Serves a handler for one test. */
export async function serve(framework: Framework, handler: Handler, setting: Setting = {}): Promise<Serving> {
  const { isProtected = true, onError } = setting
  const events: IdempotencyEvent[] = []
  let count = 0
  const started = await framework.start({
    isProtected,
    onError,
    options: {
      store: new MemoryStore(),
      scope: () => 'acme',
      ...setting.options,
      onEvent: (event) => events.push(event),
    },
    handler(call) {
      count++
      return handler(call)
    },
  })
  onTestFinished(started.close)
  const { port } = started
  return {
    ...started,
    events,
    runs: () => count,
    send: (sent) => request(port, rawOf(sent)),
    open(sent) {
      const connection = connectTo(port)
      onTestFinished(() => void connection.socket.destroy())
      connection.send(rawOf(sent))
      return connection
    },
  }
}

export function rawOf({ key = 'k', json, bytes, headers, ...sent }: Sent = {}): RawRequest {
  const common = { path: '/payouts', ...sent, key: key ?? undefined }
  if (bytes !== undefined) return { ...common, headers: headers ?? {}, bytes: Buffer.from(bytes as string) }
  const hasBody = sent.method !== 'GET' && sent.method !== 'HEAD'
  return { ...common, headers: headers ?? {}, body: hasBody ? (json ?? { amount: 100 }) : undefined }
}
