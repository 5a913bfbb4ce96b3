import { setTimeout } from 'node:timers/promises'
import type { Request, RequestHandler } from 'express'
import { notValid } from './problems.js'

const HEADER = 'x-demo-delay-ms'
const MAX_DELAY_MS = 10_000

/** Refuses a wrong delay before the key is claimed. */
export const checkDemoDelay: RequestHandler = (req, _res, next) => {
  const given = req.get(HEADER)
  if (given !== undefined && !(/^\d{1,5}$/.test(given) && Number(given) <= MAX_DELAY_MS)) {
    const message = `Must be an integer from 0 to ${MAX_DELAY_MS}`
    throw notValid('delay_invalid', 'The demo delay is not valid', { path: HEADER, message })
  }
  next()
}

/** Slows a handler down, so that a race can be shown by hand. A client that hangs up does not stop it. */
export async function demoDelay(req: Request): Promise<void> {
  const delayMs = Number(req.get(HEADER) ?? 0)
  if (delayMs > 0) await setTimeout(delayMs)
}
