import { setTimeout as pause } from 'node:timers/promises'
import type { Choices } from '../chaos/choices.js'
import { CLAIMS_NOTHING, CLIENT, type Order } from './order.js'
import type { Services } from './services.js'

/** What the clients of one key were told: the ids of the effects that they saw, and how many gave up. */
export interface Told {
  readonly ids: Set<string>
  unanswered: number
  /** Requests whose client left before the answer, or whose answer was lost. */
  aborted: number
  /** Requests whose transaction was to take the key, without a claim. */
  unclaimed: number
  /** Those of them that went through a pooler. */
  pooled: number
}

export function createTold(): Told {
  return { ids: new Set(), unanswered: 0, aborted: 0, unclaimed: 0, pooled: 0 }
}

/** Behind the last fault. */
const MOST_ASKS = 200

/** Several clients send the same order, each until it is told that it was carried out, or has asked so often since `areOver`. */
export async function placeOrder(
  key: string,
  order: Order,
  services: Services,
  choices: Choices,
  hasPooler: boolean,
  areOver: () => boolean,
): Promise<Told> {
  const told = createTold()
  const isPlain = order.way === 'plain' && !order.isSealed
  // What it reserves is a commit of its own.
  const mayClaimNothing = isPlain && !order.reserves && !order.calls
  const ask = async (): Promise<void> => {
    for (let asked = 0; asked < MOST_ASKS; asked += areOver() ? 1 : 0) {
      const port = services.port(choices.between(0, services.size - 1))
      const patienceMs = choices.chance(0.2) ? choices.between(5, 100) : choices.between(1_000, 10_000)
      const claimsNothing = mayClaimNothing && choices.chance(0.5)
      const isPooled = hasPooler && isPlain && choices.chance(0.3)
      if (claimsNothing) told.unclaimed++
      if (claimsNothing && isPooled) told.pooled++
      const headers = {
        ...(claimsNothing && { [CLAIMS_NOTHING]: 'yes' }),
        ...(isPooled && { [CLIENT]: 'pooled' }),
      }
      const reply = await send(port, toPath(order), key, order, headers, AbortSignal.timeout(patienceMs))
      if (reply.status === 0) told.aborted++
      else if (reply.id !== null) {
        told.ids.add(reply.id)
        return
      }
      await pause(choices.between(5, 300))
    }
    told.unanswered++
  }
  await Promise.all(Array.from({ length: choices.between(1, 4) }, ask))
  return told
}

/** `id`: of its effect, with 201. Status 0: it was not answered. */
export interface Reply {
  readonly status: number
  readonly id: string | null
}

export async function send(
  port: number,
  path: string,
  key: string,
  body: object,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Reply> {
  try {
    const { status, text } = await fetch(`http://127.0.0.1:${port}/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key, ...headers },
      body: JSON.stringify(body),
      signal,
    }).then(async (response) => ({ status: response.status, text: await response.text() }))
    return { status, id: status === 201 ? JSON.parse(text).id : null }
  } catch {
    return { status: 0, id: null }
  }
}

export function toPath({ isSealed, way, isPatient }: Order): string {
  if (isSealed) return 'sealed'
  return `${way === 'plain' ? 'effects' : 'mistakes'}${isPatient ? '/patient' : ''}`
}
