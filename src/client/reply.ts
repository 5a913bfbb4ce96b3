/** A problem (RFC 9457), as far as a service sends its members. */
export interface Problem {
  readonly type?: string
  readonly title?: string
  readonly status?: number
  readonly detail?: string
  /** Of the middleware: `in_flight`, `mismatched` and so on (docs/errors.md). */
  readonly code?: string
  readonly [member: string]: unknown
}

/** What one try has brought: a response whose body has been received whole, or the cause that there is none. */
export interface Reply {
  readonly response?: Response
  readonly problem?: Problem | undefined
  readonly cause?: unknown
}

export type Answered = Reply & { readonly response: Response }

const LONGEST_BACKOFF_MS = 8_000
const FIRST_BACKOFF_MS = 500

/** Also where the answer itself was too large to keep: the operation has succeeded. */
export function hasHappened(reply: Reply): reply is Answered {
  const status = statusOf(reply)
  return (status >= 200 && status < 400 && ![307, 308].includes(status)) || reply.problem?.code === 'answer_not_kept'
}

/**
 * Whether a later try would get the same. The server's word, where it gives one. Else a later try may change that there was no
 * answer, overload, and whatever broke.
 */
export function isFinal(reply: Reply): reply is Answered {
  const { response, problem } = reply
  if (!response) return false
  const { status, headers } = response
  const word = headers.get('X-Should-Retry')
  if (word) return word !== 'true'
  return status < 500 && ![408, 429].includes(status) && problem?.code !== 'in_flight'
}

/** Whether this try has had no effect: the handler refused, or what is in front of it did. */
export function isCertainRefusal(reply: Reply): boolean {
  const status = statusOf(reply)
  return status >= 400 && status < 500 && ![408, 499].includes(status)
}

/** 0: nothing that tells. A redirect that was followed may lead to a page for logging in, or behind an effect. */
function statusOf({ response }: Reply): number {
  return response && !response.redirected ? response.status : 0
}

/**
 * Whether a refusal is the operation's own. Its service claimed the key before: had an earlier try succeeded, its answer would
 * have come in place of the refusal; did one run, `in_flight`; and where one had died, the handler was told so, and looked
 * into its books before it refused. Others come before the claim, and know of no try: who asks (401, 403), how often (429),
 * a gateway's 404, and the middleware's own, which say `X-Should-Retry` or have its type.
 */
export function isOfTheOperation({ status, headers }: Response, problem: Problem | undefined): boolean {
  return (
    [400, 402, 409, 410, 422].includes(status) &&
    !headers.get('X-Should-Retry') &&
    !String(problem?.type).startsWith('urn:once-per-key:')
  )
}

/** What the server says, and up to a second more; else exponential backoff with full jitter. */
export function pauseMs({ response }: Reply, tries: number): number {
  const toldMs = retryAfterMs(response?.headers.get('Retry-After'))
  const spreadMs = toldMs > 0 ? 1_000 : Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (tries - 1))
  return toldMs + Math.random() * spreadMs
}

/** RFC 9110 §10.2.3: "Retry-After = HTTP-date / delay-seconds". 0: it says nothing, or nothing that can be read. */
function retryAfterMs(value: string | null | undefined): number {
  return Math.max(0, Number(value) * 1_000 || Date.parse(String(value)) - Date.now() || 0)
}
