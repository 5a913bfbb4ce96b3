import type { IdempotencyOptions } from 'once-per-key'
import type { Claim, Store } from 'once-per-key/core'
import { RedisStore } from 'once-per-key/redis'
import { onTestFinished } from 'vitest'
import { BINDINGS, type Binding, type Step } from '../../../support/bindings.js'
import type { ClientLibrary } from '../../../support/default-clients.js'
import { type RawReply, request } from '../../../support/raw-client.js'
import { type Serving, serve } from '../../../support/serve.js'

export interface Service extends Serving {
  post(key: string): Promise<RawReply>
  /** Sends it again for as long as the store is unavailable, as a client does that obeys `Retry-After`. */
  postUntilAvailable(key: string): Promise<RawReply>
}

export interface Setting {
  readonly handler?: Step
  readonly options?: Partial<IdempotencyOptions>
  /** Between the middleware and its store. */
  readonly around?: (store: Store) => Store
}

/** Says what it was told. */
export const pay: Step = (req, res) => {
  const { attempt, previousOutcome } = req.idempotency
  res.status(201).json({ attempt, previousOutcome })
}

/** An Express application on a real Redis at this port, for one test, with a client of its own. */
export async function startService(library: ClientLibrary, port: number, setting: Setting = {}): Promise<Service> {
  const { handler = pay, options, around = (store) => store } = setting
  const { client, close } = await library.open(port)
  onTestFinished(close)
  const store = new RedisStore({ client })
  await warm(store)
  const serving = await serve(BINDINGS[0] as Binding, handler, {
    // Long enough that no fault here is one of time, unless a test says so.
    options: { leaseMs: 30_000, storeTimeoutMs: 7_500, ...options, store: around(store) },
  })
  const post = (key: string) => request(serving.port, { key })
  return {
    ...serving,
    post,
    async postUntilAvailable(key) {
      while (true) {
        const reply = await post(key)
        if (reply.status !== 503) return reply
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
  }
}

let warmings = 0

/** The server has seen each script once: from here on a command is one request and one reply. */
async function warm(store: Store): Promise<void> {
  const terms = { token: 'a', scope: 'acme', fingerprint: 'f', retentionMs: 1_000 }
  const claim: Claim = { ...terms, leaseMs: 1_000, unknownOutcome: 'rerun' }
  const own = { ...terms, attempt: 1, uncertain: false }
  const key = `warm:${++warmings}`
  await store.begin(key, claim)
  await store.renew(key, { ...own, leaseMs: 1_000 })
  await store.release(key, { ...own, failedMs: 1_000 })
  await store.complete(key, { ...own, answer: { status: 200, statusMessage: '', headers: [], body: null } })
}
