import { setTimeout as pause } from 'node:timers/promises'
import type { Request, RequestHandler, Response } from 'express'

/** What the service answers when its work is done. */
export interface Payout {
  readonly status: number
  readonly location: string
  readonly body: Readonly<Record<string, unknown>>
}

/** The work that a request asks for: what must not be done twice. */
export type Work = (req: Request) => Promise<Payout>

export const ORDER_BYTES = 200
export const ANSWER_BYTES = 150

/** Headers by which probes make the work slow, or make it fail. */
export const WAIT_MS = 'x-bench-wait-ms'
export const FAILS = 'x-bench-fails'

/** An order as a client sends it: JSON of exactly so many bytes, the larger the more lines. */
export function orderOf(bytes: number, amountMinor = 129_900): string {
  const lines: unknown[] = []
  const order = { amountMinor, currency: 'EUR', beneficiary: { name: 'Ada Lovelace', iban: 'DE89370400440532013000' } }
  const line = (i: number) => ({ sku: `part-${i % 1_000}`, quantity: (i % 9) + 1, priceMinor: 1_000 + (i % 900) })
  let left = bytes - JSON.stringify({ ...order, lines, reference: '' }).length
  for (let i = 0; left > 500; i++) {
    lines.push(line(i))
    left -= JSON.stringify(line(i)).length + (i === 0 ? 0 : 1)
  }
  return JSON.stringify({ ...order, lines, reference: 'r'.repeat(left) })
}

/** Work that answers each order with another payout, in JSON of exactly so many bytes. */
export function payoutWork(answerBytes: number, onRun: () => void): Work {
  const fields = { amountMinor: 0, currency: 'EUR', status: 'pending' }
  const bare = JSON.stringify({ id: payoutId(0), ...fields, amountMinor: 129_900, reference: '' })
  const reference = 'r'.repeat(answerBytes - bare.length)
  let count = 0
  return async ({ body, headers }) => {
    onRun()
    const id = payoutId(++count)
    if (WAIT_MS in headers) await pause(Number(headers[WAIT_MS]))
    if (FAILS in headers) return { status: 500, location: '/', body: { error: 'the bank is closed' } }
    return {
      status: 201,
      location: `/payouts/${id}`,
      body: { id, ...fields, amountMinor: body.amountMinor, reference },
    }
  }
}

/** The route as it is without any protection. */
export function payoutHandler(work: Work): RequestHandler {
  return async (req, res) => sendPayout(res, await work(req))
}

export function sendPayout(res: Response, { status, location, body }: Payout): void {
  res.status(status).location(location).json(body)
}

function payoutId(count: number): string {
  return `payout_${String(count).padStart(10, '0')}`
}
