import { setMaxListeners } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import type { KnownWebhookEvent } from 'once-per-key/webhooks'
import type { Logger } from 'pino'
import { BooksUnavailable, type Ledger } from './ledger.js'
import { narrowLane } from './narrow-lane.js'
import { isLoopback, isPublic } from './reachable-address.js'
import { MOST_TRIES, pauseMsAfter } from './webhook-pauses.js'
import { AddressRefused, post } from './webhook-request.js'
import { signatureHeaders } from './webhook-signature.js'

export interface WebhookSenderOptions {
  readonly ledger: Ledger
  readonly logger: Logger
  /**
   * The pause behind a first try that failed; further ones grow.
   * @default 5_000: eleven tries, over about a day
   */
  readonly firstPauseMs?: number
  /**
   * For one try.
   * @default 5_000
   */
  readonly timeLimitMs?: number
  /**
   * A demo setting: subscribers on this machine. Whoever may subscribe could otherwise let this service talk to what only
   * this machine, or its network, can reach.
   * @default false: to public addresses alone
   */
  readonly mayReachLoopback?: boolean
}

export interface WebhookSender {
  /** Begins to deliver an event to subscriptions of a merchant, and waits for nothing. An event that was sent is not sent again. */
  send(merchantId: string, event: KnownWebhookEvent, subscriptionIds: readonly string[]): void
  /** Begins no further try, waits for those under way, and says how many deliveries are still pending: they are lost. */
  stop(): Promise<number>
}

const MOST_AT_ONCE = 4
const MOST_REMEMBERED = 10_000
const REFUSED = 'its address is not public (DEMO_WEBHOOK_LOOPBACK=true allows those of this machine)'

/**
 * Delivers events at least once, in no order, as long as this process lives: deliveries are in its memory, with Redis too.
 * What is pending when it ends is lost, unless its operation runs again. A service would write deliveries down in the
 * transaction of their operation.
 */
export function webhookSender(options: WebhookSenderOptions): WebhookSender {
  const { ledger, logger, firstPauseMs = 5_000, timeLimitMs = 5_000, mayReachLoopback = false } = options
  const mayReach = (address: string) => isPublic(address) || (mayReachLoopback && isLoopback(address))
  const sent = new Set<string>()
  const lanes = new Map<string, ReturnType<typeof narrowLane>>()
  const pendingOf = new Map<string, number>()
  const underWay = new Set<Promise<unknown>>()
  const stopping = new AbortController()
  // Each pause listens to it, and there may be many.
  setMaxListeners(0, stopping.signal)

  /** A subscription has its own lane: one that is slow holds up nobody else. */
  function laneOf(subscriptionId: string) {
    const lane = lanes.get(subscriptionId) ?? narrowLane(MOST_AT_ONCE)
    lanes.set(subscriptionId, lane)
    return lane
  }

  function count(subscriptionId: string, change: 1 | -1): void {
    const pending = (pendingOf.get(subscriptionId) ?? 0) + change
    if (pending > 0) return void pendingOf.set(subscriptionId, pending)
    pendingOf.delete(subscriptionId)
    lanes.delete(subscriptionId)
  }

  async function deliver(merchantId: string, event: KnownWebhookEvent, body: string, subscriptionId: string) {
    const facts = { event: event.id, subscription: subscriptionId }
    const inLane = laneOf(subscriptionId)
    for (let tries = 1; tries <= MOST_TRIES; tries++) {
      const end = await inLane(async () => {
        if (stopping.signal.aborted) return 'stopped'
        const trying = tryOnce(merchantId, event, body, subscriptionId).catch(reasonOf)
        underWay.add(trying)
        return trying.finally(() => underWay.delete(trying))
      })
      if (end === 'stopped') return
      if (end === 'delivered' || end === 'unsubscribed') {
        logger.info({ ...facts, tries }, `webhook ${end}`)
        return count(subscriptionId, -1)
      }
      const reason = end
      if (end === REFUSED) {
        logger.error({ ...facts, tries, reason }, 'webhook refused')
        return count(subscriptionId, -1)
      }
      if (tries === MOST_TRIES) logger.error({ ...facts, tries, reason }, 'webhook given up')
      else {
        const pauseMs = pauseMsAfter(tries, firstPauseMs)
        logger.warn({ ...facts, tries, reason, pauseMs }, 'webhook failed')
        if (!(await paused(pauseMs))) return
      }
    }
    count(subscriptionId, -1)
  }

  async function tryOnce(merchantId: string, { id, type }: KnownWebhookEvent, body: string, subscriptionId: string) {
    // As it is now: it may have moved, have a new secret, or be gone.
    const subscription = await ledger.transaction(merchantId, (books) =>
      books.get('webhookSubscription', subscriptionId),
    )
    if (!subscription?.events.includes(type)) return 'unsubscribed'
    const { url, secret } = subscription
    const status = await post({
      url: new URL(`${url.replace(/\/+$/, '')}/api/service/webhook-event/${type}`),
      headers: {
        'content-type': 'application/json',
        ...(secret !== null && signatureHeaders(secret, id, body, new Date())),
      },
      body,
      timeLimitMs,
      mayReach,
    })
    return status >= 200 && status <= 299 ? 'delivered' : `status ${status}`
  }

  /** `false`: it was cut short by the end. */
  function paused(ms: number): Promise<boolean> {
    return setTimeout(ms, true, { signal: stopping.signal, ref: false }).catch(() => false)
  }

  return {
    send(merchantId, event, subscriptionIds) {
      if (sent.has(event.id)) return
      sent.add(event.id)
      const [oldest] = sent
      if (sent.size > MOST_REMEMBERED && oldest !== undefined) sent.delete(oldest)
      const body = JSON.stringify(event)
      for (const id of subscriptionIds) {
        count(id, 1)
        void deliver(merchantId, event, body, id)
      }
    },
    async stop() {
      stopping.abort()
      await Promise.all(underWay)
      // One turn, in which the last of them are counted off.
      await setTimeout(0)
      return [...pendingOf.values()].reduce((sum, pending) => sum + pending, 0)
    },
  }
}

/** Words that hold no address and no secret. */
function reasonOf(error: unknown): string {
  if (error instanceof BooksUnavailable) return error.code
  if (error instanceof AddressRefused) return REFUSED
  const { name, code, cause } = error as NodeJS.ErrnoException
  // What aborted it says more than that it was aborted.
  return cause instanceof Error ? cause.name : (code ?? name)
}
