import { type ClientOptions, createClient, type KeyStorage, type Outcome } from 'once-per-key/client'
import { onTestFinished, vi } from 'vitest'

export const OPERATION = 'pay order-1001'
export const URL_OF_PAYOUTS = 'http://127.0.0.1/payouts'
export const BODY = '{"amount":100}'

/** What becomes of a try: a response, an error, or a promise of either. */
export type Step = (sent: Sent) => Response | Promise<Response>

export interface Sent {
  readonly url: string
  readonly init: RequestInit
  readonly key: string | null
  readonly body: string
  /** Of the test's clock, in milliseconds since it began. */
  readonly atMs: number
}

/** A browser's storage: it outlives the page, and so the client. */
export function keyStorage(): KeyStorage & { readonly all: Map<string, string> } {
  const all = new Map<string, string>()
  return {
    all,
    getItem: (name) => all.get(name) ?? null,
    setItem: (name, value) => void all.set(name, value),
    removeItem: (name) => void all.delete(name),
  }
}

export const reply =
  (status: number, headers: Record<string, string> = {}, body = ''): Step =>
  () =>
    new Response([204, 304].includes(status) ? null : body, { status, headers })

/** A refusal as the middleware writes it. */
export const problem = (status: number, code: string, headers: Record<string, string> = {}): Step =>
  reply(
    status,
    { 'Content-Type': 'application/problem+json', ...headers },
    JSON.stringify({ type: `urn:once-per-key:problem:${code}`, status, code }),
  )

const FINAL = { 'X-Should-Retry': 'false' }
export const done = reply(201, {}, '{"id":"po_1"}')
export const replayed = reply(201, { 'Idempotent-Replayed': 'true' }, '{"id":"po_1"}')
export const broken = reply(500)
export const declined = reply(400, {}, '{"error":"amount"}')
export const loggedOut = reply(401)
export const inFlight = problem(409, 'in_flight', { 'Retry-After': '2', 'X-Should-Retry': 'true' })
export const storeUnavailable = problem(503, 'store_unavailable', { 'Retry-After': '1', 'X-Should-Retry': 'true' })
export const mismatched = problem(409, 'mismatched', FINAL)
export const outcomeUnknown = problem(409, 'outcome_unknown', FINAL)
export const answerNotKept = problem(409, 'answer_not_kept', FINAL)
export const hangUp: Step = () => Promise.reject(new TypeError('fetch failed'))
export const halfAnAnswer: Step = () => {
  const half = new ReadableStream({
    start: (body) => body.enqueue(new TextEncoder().encode('{"id":')),
    pull: (body) => body.error(new TypeError('terminated')),
  })
  return new Response(half, { status: 201 })
}
/** Ends with its signal, as `fetch` does. */
export const silence: Step = ({ init }) =>
  new Promise((_resolve, reject) => init.signal?.addEventListener('abort', () => reject(init.signal?.reason)))

/** A service that takes one step for each try, and a client on a clock that stands still while nothing waits for it. */
export function start(steps: readonly Step[], options: Partial<ClientOptions> = {}) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const startedAt = performance.now()
  const seen: Sent[] = []
  const keys = keyStorage()
  const fetch = async (url: string | URL | Request, init: RequestInit = {}) => {
    const key = new Headers(init.headers).get('Idempotency-Key')
    const body = await new Response(init.body as ArrayBuffer).text()
    const sent = { url: String(url), init, key, body, atMs: performance.now() - startedAt }
    seen.push(sent)
    const step = steps[seen.length - 1]
    if (step === undefined) throw new Error('No step is left')
    return step(sent)
  }
  /** As a page that was loaded anew makes it. */
  const client = () => createClient({ keys, fetch, ...options })
  return {
    seen,
    keys,
    client,
    send: (init: RequestInit = {}, operation = OPERATION) =>
      inTime(client().send(operation, URL_OF_PAYOUTS, { body: BODY, ...init })),
    /** How long the client waited before each try but the first. */
    pauses: () => seen.slice(1).map(({ atMs }, i) => Math.round(atMs - (seen[i]?.atMs ?? 0))),
  }
}

/** Lets the clock go on to the next timer whenever the call waits for one. */
export async function inTime(call: Promise<Outcome>): Promise<Outcome> {
  let hasEnded = false
  const end = call.finally(() => {
    hasEnded = true
  })
  end.catch(() => {})
  for (let idleTurns = 0; !hasEnded && idleTurns < 100; idleTurns++) {
    // Bodies are read meanwhile.
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    if (hasEnded || vi.getTimerCount() === 0) continue
    idleTurns = 0
    await vi.advanceTimersToNextTimerAsync()
  }
  if (!hasEnded) throw new Error('The call waits for something that is no timer')
  return end
}
