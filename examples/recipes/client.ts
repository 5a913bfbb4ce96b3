export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

export type Outcome =
  /** It has happened, once. Call `forget` when the answer is safe with you. */
  | { readonly outcome: 'done'; readonly answer: Answer }
  /** It has not happened. Correct the request, or tell the user. */
  | { readonly outcome: 'refused'; readonly answer: Answer }
  /** It may have happened. Send the same operation again later, or look it up; never start it anew. */
  | { readonly outcome: 'unknown'; readonly answer?: Answer; readonly cause?: unknown }

export interface ClientOptions {
  /** Where keys outlive a page: `localStorage` in a browser. */
  readonly keys: KeyStorage
  readonly fetch?: typeof fetch
  readonly pause?: (ms: number) => Promise<unknown>
  readonly random?: () => number
  /** For each attempt, its body included. */
  readonly timeoutMs?: number
  readonly maxAttempts?: number
  /** Whoever is told to wait longer gives up for now. */
  readonly maxPauseMs?: number
  /**
   * Whether a refusal speaks for every attempt under its key, and not for its own alone: see `isOfTheOperation`.
   * @default isOfTheOperation
   */
  readonly settles?: (refusal: Answer) => boolean
}

/** As much of the browser's `Storage` as is used. */
export interface KeyStorage {
  getItem(name: string): string | null
  setItem(name: string, value: string): void
  removeItem(name: string): void
}

/**
 * Sends operations until their outcome is known. An operation has a name of the application's, such as `pay order-1001`:
 * the same name is the same operation, with the same key, on every attempt and after a reload of the page.
 * Two tabs that begin it in the same instant may each make a key: where that can happen, let the name itself be the key.
 */
export function retryingClient(options: ClientOptions) {
  const { keys, pause = sleep, random = Math.random } = options
  const { timeoutMs = 10_000, maxAttempts = 6, maxPauseMs = 30_000, settles = isOfTheOperation } = options
  const send = options.fetch ?? fetch

  return {
    async post(operation: string, url: string, body: unknown, headers: Record<string, string> = {}): Promise<Outcome> {
      const known = keys.getItem(operation)
      const key = known ?? crypto.randomUUID()
      keys.setItem(operation, key) // before the first attempt: whatever happens now, the key is kept
      let mayHaveHappened = known !== null // An attempt whose end nobody saw may have been made before a reload.

      for (let attempt = 1; ; attempt++) {
        const last = await request(key, url, body, headers)
        const { answer } = last
        if (answer !== undefined && hasHappened(answer)) return { outcome: 'done', answer }
        if (answer !== undefined && !shouldRetry(answer)) return refused(operation, answer, mayHaveHappened)
        mayHaveHappened = true

        const waitMs = retryAfterMs(answer)
        if (attempt === maxAttempts || waitMs > maxPauseMs) return { outcome: 'unknown', ...last }
        await pause(waitMs + random() * Math.min(maxPauseMs, 500 * 2 ** attempt)) // apart from others that wait
      }
    },

    /** Its answer is safe: the same name is a new operation from now on. */
    forget(operation: string): void {
      keys.removeItem(operation)
    },
  }

  /** A connection that breaks in the middle of an answer is an error like any other: the key makes it harmless. */
  async function request(
    key: string,
    url: string,
    body: unknown,
    headers: Record<string, string>,
  ): Promise<{ answer?: Answer; cause?: unknown }> {
    try {
      const response = await send(url, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json', 'Idempotency-Key': key },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
      })
      return { answer: { status: response.status, headers: response.headers, body: await response.text() } }
    } catch (cause) {
      return { cause }
    }
  }

  /** Where an earlier attempt may have had its effect, only a refusal that speaks for that one too settles it. */
  function refused(operation: string, answer: Answer, mayHaveHappened: boolean): Outcome {
    const isOpen = (mayHaveHappened && !settles(answer)) || problemOf(answer).code === 'outcome_unknown'
    if (isOpen) return { outcome: 'unknown', answer }
    keys.removeItem(operation)
    return { outcome: 'refused', answer }
  }
}

/** Also where the answer itself was too large to keep: the operation succeeded. */
function hasHappened(answer: Answer): boolean {
  return (answer.status >= 200 && answer.status < 300) || problemOf(answer).code === 'answer_not_kept'
}

/**
 * Whether a refusal is the operation's own. Its service claimed the key before: had an earlier attempt succeeded, its answer
 * would have come in place of the refusal; did one run, `in_flight`; and where one had died, the handler was told so, and
 * looked into its books before it refused. Others come before the claim, and know of no attempt: who asks (401, 403), how
 * often (429), a gateway's 404, the library's own. A service whose handlers do not look is not believed: `settles: () => false`.
 */
function isOfTheOperation(refusal: Answer): boolean {
  return [400, 402, 409, 410, 422].includes(refusal.status) && !problemOf(refusal).type?.startsWith('urn:once-per-key:')
}

/** The server's word, where it gives one. Else what a later attempt may change: overload, and whatever broke. */
function shouldRetry({ status, headers }: Answer): boolean {
  const word = headers.get('X-Should-Retry')
  if (word !== null) return word === 'true'
  return status === 408 || status === 429 || status >= 500
}

/** RFC 9110 §10.2.3: seconds, or a date. */
function retryAfterMs(answer: Answer | undefined): number {
  const value = answer?.headers.get('Retry-After') ?? '0'
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now()
  return Math.max(0, ms || 0)
}

/** RFC 9457. */
function problemOf({ headers, body }: Answer): { readonly type?: string; readonly code?: string } {
  if (!headers.get('Content-Type')?.startsWith('application/problem+json')) return {}
  try {
    return JSON.parse(body) ?? {}
  } catch {
    return {}
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
