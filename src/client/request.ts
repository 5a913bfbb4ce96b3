import type { Problem, Reply } from './reply.js'
import { within } from './within.js'

/** A request that can be sent any number of times, always with the same bytes. */
export interface RepeatableRequest extends RequestInit {
  readonly url: string
  readonly headers: Headers
}

/**
 * Reads the body once: a form gets a new boundary each time it is sent, and a relative URL depends on the page's
 * current URL. Throws a `TypeError` if `fetch` would, or if a retry could not be safe.
 */
export async function repeatable(url: unknown, init: RequestInit): Promise<RepeatableRequest> {
  const { body, method = 'POST', mode } = init
  if (url instanceof Request) throw new TypeError('The address must be a string or a URL.')
  if (body instanceof ReadableStream || Symbol.asyncIterator in Object(body)) {
    throw new TypeError('A stream cannot be sent twice: read it into a Blob first.')
  }
  if (mode === 'no-cors') throw new TypeError("The mode 'no-cors' drops the Idempotency-Key header.")
  const request = new Request(String(url), { ...init, method, signal: null })
  const { headers } = request
  if (headers.has('Idempotency-Key')) {
    throw new TypeError('The client sets the Idempotency-Key header, from the option `keys`.')
  }
  const bytes = body == null ? null : await request.arrayBuffer()
  return { ...init, url: request.url, method, headers, body: bytes }
}

/**
 * Sends the request once, and receives the complete response. A connection that breaks inside the body is an error like
 * any other: the key makes a retry harmless.
 */
export async function tryOnce(
  send: typeof fetch,
  { url, ...init }: RepeatableRequest,
  limitMs: number,
): Promise<Reply> {
  try {
    return await within(limitMs, init.signal, async (signal) => {
      const response = await send(url, { ...init, signal })
      return { response, problem: problemIn(response.headers, await response.clone().text()) }
    })
  } catch (cause) {
    return { cause }
  }
}

function problemIn(headers: Headers, text: string): Problem | undefined {
  if (!/^application\/problem\+json/i.test(String(headers.get('Content-Type')))) return
  try {
    const value = JSON.parse(text)
    if (Object(value) === value) return value
  } catch {}
  return
}
