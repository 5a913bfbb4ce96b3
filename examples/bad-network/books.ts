import { setTimeout } from 'node:timers/promises'
import type { Merchant } from './instructions.js'

/** A service that cannot be simulated against. Its message is one line. */
export class ServiceUnfit extends Error {}

export interface Books {
  /** How often the operation of a name had its effect for a merchant: the service's own count, not what clients saw. */
  runsOf(merchant: Merchant, name: string): Promise<number>
}

const TRIES = 20
const PAUSE_MS = 250

/** The books of the service at an address. One that is away for a moment is asked again. */
export function booksAt(origin: string): Books {
  async function ask({ apiKey }: Merchant, name: string): Promise<number | string> {
    const url = `${origin}/demo/operations/${name}`
    try {
      const response = await fetch(url, { headers: { authorization: `Bearer ${apiKey}` } })
      const text = await response.text()
      if (response.status === 503) return 'the service cannot reach its books'
      const runs = response.ok ? JSON.parse(text).runs : undefined
      if (Number.isSafeInteger(runs)) return runs
    } catch (error) {
      // A connection that failed says why in its cause; an answer that is no JSON has none.
      const { cause } = error as { cause?: NodeJS.ErrnoException }
      if (cause !== undefined) return cause.code ?? cause.message
    }
    throw new ServiceUnfit(`${origin} is not the payments example: ${url} does not say how often an operation ran.`)
  }

  return {
    async runsOf(merchant, name) {
      let answer: number | string = ''
      for (let tries = 0; tries < TRIES; tries++) {
        if (tries > 0) await setTimeout(PAUSE_MS)
        answer = await ask(merchant, name)
        if (typeof answer === 'number') return answer
      }
      throw new ServiceUnfit(`The books of ${origin} cannot be read: ${answer}.`)
    },
  }
}

/** @throws ServiceUnfit where there is nothing to simulate against. */
export async function checkService(origin: string, merchants: readonly Merchant[]): Promise<void> {
  const health = await fetch(`${origin}/health`).then(
    (response) => response.json().catch(() => null) as Promise<Readonly<Record<string, unknown>> | null>,
    ({ cause }) => {
      throw new ServiceUnfit(`Nothing answers at ${origin}: ${cause?.code ?? cause?.message}.`)
    },
  )
  const [away] = Object.entries(health ?? {}).find(([, state]) => state === 'away') ?? []
  if (away !== undefined) throw new ServiceUnfit(`The service cannot reach its ${away}.`)
  for (const merchant of merchants) await booksAt(origin).runsOf(merchant, 'never-seen')
}
