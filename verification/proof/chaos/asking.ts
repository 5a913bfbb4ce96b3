import { connectTo } from '../../../test/support/raw-client.js'
import { beatsIn } from '../limits/pulse.js'
import type { Fleet, Place } from './fleet.js'
import { instant } from './journal.js'
import { ORDERS } from './orders.js'

/** A payment as a client sends it, again and again. */
export interface Payment {
  readonly scope: Scope
  readonly key: string
  /** Tells one body from another under the same key; the same in both scopes. */
  readonly reference: string
  /** Its first body may be one that the service refuses. */
  readonly amount: number
  /** It is an order of several steps. */
  readonly isOrder?: boolean
}

export const SCOPES = ['mer_acme', 'mer_globex'] as const
export type Scope = (typeof SCOPES)[number]

/** A request, and what became of it. */
export interface Asked {
  readonly payment: Payment
  readonly place: Place
  readonly sentAt: number
  readonly delayMs: number
  readonly endedAt: number
  /** How many beats its service had meanwhile. */
  readonly beats: number
  /** `closed`: the connection ended without a reply; `unanswered`: patience ended. */
  readonly end: 'replied' | 'closed' | 'aborted' | 'unanswered'
  readonly reply?: Reply
}

export interface Reply {
  readonly status: number
  readonly replayed: boolean
  /** Of a problem. */
  readonly code: string | null
  /** What it says of the payment: its id, and which body it was made from. */
  readonly entry: string | null
  readonly reference: string | null
  /** All that must be the same in each replay. */
  readonly essence: string
}

export interface Manner {
  readonly delayMs?: number
  /** The client hangs up after so long. */
  readonly abortAfterMs?: number
}

const PATIENCE_BEATS = 200
const API_KEYS: Record<Scope, string> = { mer_acme: 'demo_acme', mer_globex: 'demo_globex' }

export type Ask = (payment: Payment, service: number, manner?: Manner) => Promise<Asked>

/** Sends requests over connections of their own, and keeps a log of them all. */
export function asker(fleet: Fleet, log: Asked[]): Ask {
  return async (payment, service, { delayMs = 0, abortAfterMs } = {}) => {
    const place = fleet.place(service)
    const pulse = fleet.pulse(service)
    const sentAt = instant()
    const sentBeats = pulse.beats
    const connection = connectTo(place.port)
    connection.send({
      path: payment.isOrder === true ? ORDERS : '/api/service/payout/create',
      key: payment.key,
      headers: { Authorization: `Bearer ${API_KEYS[payment.scope]}`, 'X-Demo-Delay-Ms': `${delayMs}` },
      body: { amount: payment.amount, currency: 'EUR', reference: payment.reference },
    })
    let end: Asked['end'] = 'closed'
    const hangUp = (why: Asked['end']) => () => {
      end = why
      connection.socket.destroy()
    }
    const abort = abortAfterMs === undefined ? undefined : setTimeout(hangUp('aborted'), abortAfterMs)
    const heard = connection.reply().catch(() => null)
    const raw = await pulse.within(PATIENCE_BEATS + beatsIn(delayMs), heard).catch(() => {
      hangUp('unanswered')()
      return null
    })
    const endedAt = instant()
    clearTimeout(abort)
    connection.socket.destroy()
    const facts = { payment, place, sentAt, delayMs, endedAt, beats: pulse.beats - sentBeats }
    const asked: Asked = raw === null ? { ...facts, end } : { ...facts, end: 'replied', reply: replyOf(raw) }
    log.push(asked)
    return asked
  }
}

type RawReply = Awaited<ReturnType<ReturnType<typeof connectTo>['reply']>>

/** Made anew for each response; and what tells an effect that was found in the books from one that was made. */
const OF_THE_MOMENT = new Set(['date', 'connection', 'keep-alive', 'idempotent-replayed', 'x-demo-outcome'])

function replyOf(raw: RawReply): Reply {
  const { code = null, id = null, reference = null } = raw.json() as Record<string, string | undefined>
  // The order of different names has no meaning (RFC 9110 §5.3).
  const headers = raw.headers
    .filter(([name]) => !OF_THE_MOMENT.has(name.toLowerCase()))
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return {
    status: raw.status,
    replayed: raw.header('Idempotent-Replayed') === 'true',
    code,
    entry: id,
    reference,
    essence: JSON.stringify([raw.status, raw.statusMessage, headers, raw.body.toString('base64')]),
  }
}

/** A success, be it fresh or a replay. */
export function isSuccess({ reply }: Asked): boolean {
  return reply?.status === 201
}
