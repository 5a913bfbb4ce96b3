import type { Problem, TryResult } from './reply.js'

/** A request that can be sent any number of times, always with the same bytes. */
export interface RepeatableRequest extends RequestInit {
  readonly url: string
  readonly headers: Headers
  readonly body: ArrayBuffer | null
  /** The address, the method and the headers of the caller, for comparison. */
  readonly head: string
}

/**
 * Reads the body once: a form gets a new boundary each time it is sent, and a relative URL depends on the page's
 * current URL. Throws a `TypeError` if `fetch` would, if a retry could not be safe, or if `fetch` would send
 * `[object Object]` or `undefined` for what was meant.
 */
export async function toRepeatableRequest(url: string | URL, init: RequestInit): Promise<RepeatableRequest> {
  const { body, method = 'POST', mode } = init
  if (typeof ((url as URL)?.href ?? url) !== 'string' || Object(init) !== init)
    throw new TypeError('Use a URL and an object.')
  if (!BODIES.test({}.toString.call(body))) throw new TypeError('Use JSON.stringify or a Blob.')
  const request = new Request(`${url}`, { ...init, method, signal: null })
  const { headers, url: address } = request
  if (mode === 'no-cors' || headers.has('Idempotency-Key')) {
    throw new TypeError('Only `keys` sets Idempotency-Key.')
  }
  return {
    ...init,
    url: address,
    method,
    headers,
    body: body ? await request.arrayBuffer() : null,
    // Not those of the request: a form gets another boundary each time.
    head: `${[address, method, ...new Headers(init.headers)]}`,
  }
}

/** What `fetch` sends by its bytes. It makes any other value a string. A stream can be sent only once. */
const BODIES = / (Undefined|Null|String|Blob|File|FormData|URLSearchParams|DataView|ArrayBuffer|.+Array)\]/

/**
 * Sends the request once, and receives the complete response. A connection that breaks inside the body is an error like
 * any other: the key makes a retry harmless.
 */
export function tryOnce(
  send: typeof fetch,
  request: RepeatableRequest,
  limitMs: number,
  callers: AbortSignal,
): Promise<TryResult> {
  return runWithTimeLimit(limitMs, callers, async (signal) => {
    try {
      const response = await send(request.url, { ...request, signal })
      return { response, problem: parseProblem(await response.clone().text(), response) }
    } catch (cause) {
      return { cause }
    }
  })
}

function parseProblem(text: string, { headers }: Response): Problem | undefined {
  if (!/problem\+json/i.test(`${headers.get('Content-Type')}`)) return
  try {
    const value = JSON.parse(text)
    if (Object(value) === value) return value
  } catch {}
  return
}

/**
 * Resolves with the result of `work`; as soon as the time is over or the caller aborts, with the cause, even if `work`
 * ignores its signal, as the caller's own `fetch` may.
 */
export async function runWithTimeLimit<Result>(
  limitMs: number,
  callers: AbortSignal | null | undefined,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result | { readonly cause: unknown }> {
  const controller = new AbortController()
  let end!: () => void
  const over = new Promise<{ readonly cause: unknown }>((resolve) => {
    end = () => {
      const cause = callers?.reason ?? new DOMException('Timeout', 'TimeoutError')
      controller.abort(cause)
      resolve({ cause })
    }
  })
  const timer = setTimeout(end, limitMs)
  callers?.addEventListener('abort', end)
  if (callers?.aborted) end()
  try {
    return await Promise.race([over, work(controller.signal)])
  } finally {
    clearTimeout(timer)
    callers?.removeEventListener('abort', end)
  }
}
