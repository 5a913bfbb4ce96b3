import { Buffer } from 'node:buffer'

/** Registered, so that an ES module and a CommonJS copy of the library know each other's. */
const REPLY = Symbol.for('once-per-key: reply')

/** An answer that can be read at once, which a `Response` cannot: for transactions that are synchronous. */
export interface Reply {
  readonly [REPLY]: true
  readonly status: number
  readonly body: Uint8Array | null
  readonly headers: readonly (readonly [name: string, value: string])[]
}

/**
 * The answer of a transaction on SQLite, whose work must return it at once: `body` a string or bytes as they are, an object as JSON.
 *
 * @example
 * await store.transaction(context, (tx) => {
 *   tx.prepare('INSERT INTO payouts (id) VALUES (?)').run(id)
 *   return reply(201, { id })
 * })
 */
export function reply(
  status: number,
  body?: string | Uint8Array | object | null,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  const isJson = typeof body === 'object' && body !== null && !(body instanceof Uint8Array)
  const given = Object.entries(headers)
  const hasType = given.some(([name]) => name.toLowerCase() === 'content-type')
  return {
    [REPLY]: true,
    status,
    body: bytesOf(body),
    headers:
      hasType || !body || body instanceof Uint8Array ? given : [['Content-Type', isJson ? JSON_TYPE : TEXT], ...given],
  }
}

/** As `Response.json` and `new Response` with a text name them. */
const JSON_TYPE = 'application/json'
const TEXT = 'text/plain;charset=UTF-8'

export function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && REPLY in value
}

function bytesOf(body: string | Uint8Array | object | null | undefined): Uint8Array | null {
  if (body === undefined || body === null) return null
  if (body instanceof Uint8Array) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}
