/** The members of a problem (RFC 9457) that a service may send. */
export interface Problem {
  readonly type?: string
  readonly title?: string
  readonly status?: number
  readonly detail?: string
  /** The middleware's codes: `in_flight`, `mismatched` and so on (docs/errors.md). */
  readonly code?: string
  readonly [member: string]: unknown
}

/** The result of one try: a response with its complete body, or why there is none. */
export interface TryResult {
  readonly response?: Response
  readonly problem?: Problem | undefined
  readonly cause?: unknown
}

type CompleteTryResult = TryResult & { readonly response: Response }

const LONGEST_BACKOFF_MS = 8_000
const HALF_FIRST_BACKOFF_MS = 250

/**
 * Also if the answer was too large to keep: the operation has succeeded. A redirect may lead to a login page, so it counts only as a
 * stored response: a guard in front of the middleware does not replay.
 */
export function hasHappened(reply: TryResult): reply is CompleteTryResult {
  return (isReplayed(reply) ? /^[23]/ : /^2/).test(getDirectStatus(reply)) || reply.problem?.code === 'answer_not_kept'
}

/** Whether an earlier try had done it, and this is its stored response. */
export function isReplayed({ response }: TryResult): boolean {
  return response?.headers.get('Idempotent-Replayed') === 'true'
}

/**
 * Whether a later try would get the same response. The server decides if it says so. Otherwise a later try may help
 * after a missing response, overload, or a server error.
 */
export function isFinal(reply: TryResult): reply is CompleteTryResult {
  const { response, problem } = reply
  if (!response) return false
  const word = response.headers.get('X-Should-Retry')
  if (word) return word !== 'true'
  return !/^5|408|429/.test(`${response.status}`) && problem?.code !== 'in_flight'
}

/** Whether this try certainly had no effect: the handler refused, or a server in front of it. */
export function isCertainRefusal(reply: TryResult): boolean {
  return /^4(?!08|99)/.test(getDirectStatus(reply))
}

/** Empty if it does not tell. A redirect that was followed may lead to a login page, or may come after an effect. */
function getDirectStatus({ response }: TryResult): string {
  return response && !response.redirected ? `${response.status}` : ''
}

/**
 * Whether the operation itself refused. Its service had claimed the key: if an earlier try had succeeded, its answer
 * would have been replayed; if one was running, the response would be `in_flight`; and if one had died, the handler was
 * told and checked its books before it refused. Other refusals come before the claim and know of no earlier try:
 * authentication (401, 403), rate limits (429), a gateway's 404, and the middleware's own, which have `X-Should-Retry`
 * or its problem type.
 */
export function isRefusedByOperation({ status, headers }: Response, problem: Problem | undefined): boolean {
  return (
    /40[029]|410|422/.test(`${status}`) &&
    !headers.get('X-Should-Retry') &&
    !/^urn:once-per-key:/.test(`${problem?.type}`)
  )
}

/** The server's `Retry-After` plus up to a second; otherwise exponential backoff with full jitter. */
export function computePauseMs({ response }: TryResult, tries: number): number {
  const told = `${response?.headers.get('Retry-After')}`
  // RFC 9110 §10.2.3: "Retry-After = HTTP-date / delay-seconds". Absent or invalid is 0.
  const toldMs = Math.max(0, +told * 1_000 || Date.parse(told) - (readServerTime(response) || Date.now()) || 0)
  const spreadMs = toldMs ? 1_000 : Math.min(LONGEST_BACKOFF_MS, HALF_FIRST_BACKOFF_MS * 2 ** tries)
  return toldMs + Math.random() * spreadMs
}

/** The service's time, in milliseconds. Not a number without `Date`, which browsers hide from other origins unless it is exposed. */
export function readServerTime(response: Response | undefined): number {
  return Date.parse(`${response?.headers.get('Date')}`)
}
