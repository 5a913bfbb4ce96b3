// The service on trial, in a process of its own: it counts what it does, and what that costs.
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PerformanceObserver } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import { answerCalls } from './calls.js'
import { payoutWork } from './payout.js'
import type { Protection, Servers } from './protection.js'
import type { Setup, Window } from './service.js'
import { variantOf } from './variants.js'

const { open } = variantOf(process.argv[2] ?? '')
const servers: Servers = JSON.parse(process.argv[3] ?? '')

let protection: Protection | undefined
let listener: RequestListener
let requests = 0
let runs = 0
let cpuBefore = process.cpuUsage()

const server = createServer((req, res) => {
  requests++
  listener(req, res)
})
// A connection that waits while its server does, for a disk, is not idle.
server.keepAliveTimeout = 0

/**
 * Anew: a store of its own, an application of its own. What was before is not collected by force: where no request is under way, that
 * throws away most of what the engine has compiled, which then costs for 20,000 requests.
 */
async function reset({ phase, answerBytes }: Setup): Promise<void> {
  await protection?.close?.()
  const work = payoutWork(answerBytes, () => runs++)
  protection = await open(work, { ...servers, phase })
  listener = 'listener' in protection ? protection.listener : expressApplication(protection.handlers)
}

function expressApplication(handlers: readonly RequestHandler[]): RequestListener {
  const app = express()
  app.post('/payouts', express.json({ limit: '2mb' }), ...handlers)
  app.use(answerError)
  return app
}

/** Without a word on the console, whose cost would count. */
const answerError: ErrorRequestHandler = (error, _req, res, next) => {
  if (res.headersSent) return next(error)
  const status = res.statusCode >= 400 ? res.statusCode : (error.status ?? 500)
  res.status(status).json({ error: String(error) })
}

let collectionsMs: number[] | undefined

/** In milliseconds, how long the process stood still for each collection since the last call. The first call begins to watch. */
async function collections(): Promise<readonly number[]> {
  if (collectionsMs === undefined) {
    const add = (list: { getEntries(): readonly { readonly duration: number }[] }) =>
      collectionsMs?.push(...list.getEntries().map(({ duration }) => duration))
    new PerformanceObserver(add).observe({ entryTypes: ['gc'] })
  }
  // The observer is called some turns after the collection.
  for (let turn = 0; turn < 5; turn++) await nextTurn()
  const seen = collectionsMs ?? []
  collectionsMs = []
  return seen
}

answerCalls({
  collections,
  async listen(): Promise<number> {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  },
  reset,
  fill: (count: number) => protection?.fill?.(count),
  begin() {
    requests = 0
    runs = 0
    cpuBefore = process.cpuUsage()
  },
  end(): Window {
    const { user, system } = process.cpuUsage(cpuBefore)
    return { cpuMicros: user + system, requests, runs }
  },
  /** Bytes that are still needed: on the heap, and in buffers outside of it. */
  memory(): number {
    globalThis.gc?.()
    globalThis.gc?.()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  },
})
