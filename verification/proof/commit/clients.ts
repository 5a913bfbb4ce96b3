import { setTimeout as pause } from 'node:timers/promises'
import type { Choices } from '../chaos/choices.js'
import { Late, type Pulse } from '../limits/pulse.js'
import { CLAIMS_NOTHING, type Order, THROUGH_POOLER } from './order.js'
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

/** How a request is served. */
interface Way {
  /** Its transaction takes the key, without a claim. */
  readonly claimsNothing: boolean
  readonly throughPooler: boolean
}

const USUAL: Way = { claimsNothing: false, throughPooler: false }

export function toldNothing(): Told {
  return { ids: new Set(), unanswered: 0, aborted: 0, unclaimed: 0, pooled: 0 }
}

/** Behind the last fault. */
const MOST_ASKS = 200

/** Several clients send the same order, each until it is told that it was carried out, or has asked so often since `areOver`. */
export async function placeOrder(
  key: string,
  order: Order,
  clients: number,
  services: Services,
  size: number,
  choices: Choices,
  areOver: () => boolean,
): Promise<Told> {
  const told = toldNothing()
  const isPlain = order.way === 'plain' && !order.isSealed
  // What it reserves is a commit of its own.
  const mayClaimNothing = isPlain && !order.reserves && !order.calls
  const ask = async (): Promise<void> => {
    for (let asked = 0; asked < MOST_ASKS; asked += areOver() ? 1 : 0) {
      const port = services.port(choices.between(0, size - 1))
      const patienceMs = choices.chance(0.2) ? choices.between(5, 100) : choices.between(1_000, 10_000)
      const claimsNothing = mayClaimNothing && choices.chance(0.5)
      const throughPooler = isPlain && choices.chance(0.3)
      if (claimsNothing) told.unclaimed++
      if (claimsNothing && throughPooler) told.pooled++
      const id = await send(port, key, order, AbortSignal.timeout(patienceMs), { claimsNothing, throughPooler })
      if (id === 'aborted') told.aborted++
      else if (id !== null) {
        told.ids.add(id)
        return
      }
      await pause(choices.between(5, 300))
    }
    told.unanswered++
  }
  await Promise.all(Array.from({ length: clients }, ask))
  return told
}

/** The id of the effect; `null`: to come back. */
export async function send(
  port: number,
  key: string,
  order: Order,
  signal: AbortSignal,
  { claimsNothing, throughPooler } = USUAL,
): Promise<string | 'aborted' | null> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/${pathOf(order)}`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'Idempotency-Key': key,
        ...(claimsNothing && { [CLAIMS_NOTHING]: 'yes' }),
        ...(throughPooler && { [THROUGH_POOLER]: 'yes' }),
      },
      body: JSON.stringify(order),
      signal,
    })
    const body = await response.text()
    return response.status === 201 ? JSON.parse(body).id : null
  } catch {
    return 'aborted'
  }
}

/** The same; it leaves when the service has had so many beats. */
export async function sendAndWait(
  port: number,
  key: string,
  order: Order,
  beats: number,
  pulse: Pulse,
): Promise<string | 'aborted' | null> {
  const leaving = new AbortController()
  const sent = send(port, key, order, leaving.signal)
  try {
    return await pulse.within(beats, sent)
  } catch (error) {
    if (!(error instanceof Late)) throw error
    leaving.abort()
    return sent
  }
}

function pathOf({ isSealed, way, isPatient }: Order): string {
  if (isSealed) return 'sealed'
  return `${way === 'plain' ? 'effects' : 'mistakes'}${isPatient ? '/patient' : ''}`
}
