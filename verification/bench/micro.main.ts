// The library without HTTP, in a process of its own.
import { createRequestEngine } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { computeRequestFingerprint } from '../../src/http/request/request-fingerprint.js'
import { answerCalls } from './calls.js'
import { orderOf } from './payout.js'

const BATCHES = 9

/** Microseconds of CPU for one, in each of several batches; the first batches only warm up. */
async function microsOf(
  operations: number,
  operation: (i: number) => unknown,
  prepare?: () => void,
): Promise<number[]> {
  const values: number[] = []
  for (let batch = -2; batch < BATCHES; batch++) {
    prepare?.()
    globalThis.gc?.()
    const from = process.cpuUsage()
    for (let i = 0; i < operations; i++) await operation(i)
    const { user, system } = process.cpuUsage(from)
    if (batch >= 0) values.push((user + system) / operations)
  }
  return values
}

/** One whole run on memory: from the request's facts to its answer stored. */
function decideAndSettle(operations: number): Promise<number[]> {
  const store = new MemoryStore()
  const engine = createRequestEngine<object>({ store, scope: () => 'merchant_4f9a1c7e2b' })
  const body = JSON.parse(orderOf(200))
  const answerBody = Buffer.from(`{"id":"payout_0000000001","status":"pending","reference":"${'r'.repeat(90)}"}`)
  const headers = [
    ['Location', '/payouts/payout_0000000001'],
    ['Content-Type', 'application/json; charset=utf-8'],
    ['ETag', 'W/"96-FZq0Nf0Q2k0Y2vQbVY3vVbYxk3c"'],
  ] as const
  const answer = { status: 201, statusMessage: '', headers, body: answerBody }
  let count = 0
  return microsOf(
    operations,
    async () => {
      const key = `0b6ff2c3-6f4e-4a52-9d6c-${(count++).toString(16).padStart(12, '0')}`
      const decision = await engine.decide({
        request: {},
        method: 'POST',
        target: '/payouts',
        rawHeaders: [...RAW_HEADERS, 'idempotency-key', key],
        body,
        bodyWasRead: true,
        isAbandoned: () => false,
      })
      if (decision.action !== 'execute') throw new Error(`Decided: ${decision.action}.`)
      await decision.run.settle(answer)
    },
    () => store.clear(),
  )
}

const RAW_HEADERS = ['Host', '127.0.0.1:3000', 'Content-Type', 'application/json', 'Content-Length', '200']

function fingerprint({ bytes, operations }: { bytes: number; operations: number }): Promise<number[]> {
  const body = JSON.parse(orderOf(bytes))
  return microsOf(operations, () => computeRequestFingerprint('POST', '/payouts', body))
}

/** The engine's own cost of awaiting, which stands in every figure. */
function nothing(operations: number): Promise<number[]> {
  return microsOf(operations, () => undefined)
}

export type MicroCalls = {
  decideAndSettle: typeof decideAndSettle
  fingerprint: typeof fingerprint
  nothing: typeof nothing
}

answerCalls({ decideAndSettle, fingerprint, nothing })
