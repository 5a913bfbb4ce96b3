import { setTimeout } from 'node:timers/promises'
import { ServiceUnfit } from './books.js'
import type { Instruction } from './instructions.js'
import { type Reply, sendOnce } from './network.js'
import type { Payment, Sender, Try } from './plan.js'
import type { Records } from './records.js'

/** How a client's efforts end. `null`: it gave up without a word from the service. */
export type End = Reply | null

export interface ClientOptions {
  /** Where the processes of the service are. */
  readonly origins: readonly string[]
  /** `false`: without the `Idempotency-Key` header. */
  readonly isProtected: boolean
  readonly records: Records
}

/** For all tries together: longer than any lease of the example lasts. */
const GIVE_UP_MS = 45_000
/** Nobody was answered for so long: there is no service to learn anything from. */
const SILENCE_MS = 20_000
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000

/** A client that retries properly: the same key and the same body, later and later, until the service has the last word. */
export function openClient({ origins, isProtected, records }: ClientOptions) {
  let heardAt = performance.now()

  /** Another `instruction` than the payment's own goes under its key all the same. */
  return async function send(
    { merchant, key, ...own }: Payment,
    sender: Sender,
    instruction: Instruction & { readonly name: string } = own,
  ): Promise<End> {
    const { path, body, name } = instruction
    const headers = {
      authorization: `Bearer ${merchant.apiKey}`,
      'x-demo-operation': name,
      ...(isProtected && { 'idempotency-key': key }),
    }
    const end = performance.now() + GIVE_UP_MS
    for (let tries = 0; performance.now() < end; tries++) {
      const next: Try = sender.tries[tries] ?? { delayMs: 0 }
      const origin = origins[(sender.firstProcess + tries) % origins.length]
      const sent = { url: `${origin}${path}`, headers, body: JSON.stringify(body) }
      const { reply, struck } = await sendOnce(sent, next, sender.choices)
      records.tried(reply)
      if (struck && next.fault !== undefined) records.struck(next.fault)
      if (reply !== null) heardAt = performance.now()
      if (reply !== null && !mayRetry(reply)) return reply
      if (performance.now() - heardAt > SILENCE_MS) throw new ServiceUnfit('The service does not answer any more.')
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS)
      // With jitter, so that clients which failed together do not come back together.
      await setTimeout(Math.max(sender.choices.between(pauseMs / 2, pauseMs), retryAfterMs(reply)))
    }
    return null
  }
}

/** The service says it itself; where it does not, what is its own or a matter of time is tried again. */
function mayRetry({ status, header }: Reply): boolean {
  const advice = header('x-should-retry')
  if (advice !== undefined) return advice === 'true'
  return status >= 500 || status === 408 || status === 429
}

/** RFC 9110 §10.2.3: seconds here; this service sends no dates. */
function retryAfterMs(reply: Reply | null): number {
  const seconds = Number(reply?.header('retry-after') ?? 0)
  return Number.isFinite(seconds) ? seconds * 1_000 : 0
}
