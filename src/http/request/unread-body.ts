import { bytesIn, Gathered } from './gathered.js'

/**
 * The bytes of a request's body; `null`: there are more than so many; `undefined`: it has none. The request stays unread for its
 * handler. Rejects with what the body's source fails with.
 */
export async function unreadBody(request: Request, mostBytes: number): Promise<Uint8Array | null | undefined> {
  const { body } = request.clone()
  if (body === null) return undefined
  const reader = body.getReader()
  const read = new Gathered()
  for (let pieces = 0; pieces < MOST_PIECES; pieces++) {
    const { done, value } = await reader.read()
    if (done) return read.whole()
    read.add(bytesIn(value))
    if (read.byteLength > mostBytes) {
      leave(reader)
      return null
    }
  }
  leave(reader)
  return joinedBody(request, mostBytes)
}

/**
 * What is read of a copy waits for the handler in the same pieces, in an array of which Node removes the first: in time quadratic in their
 * number. Bodies of JSON or forms arrive in fewer, unless a client sends very small ones.
 */
const MOST_PIECES = 4_096

/** Reads the request's own body, and gives it the bytes in one piece. */
async function joinedBody(request: Request, mostBytes: number): Promise<Uint8Array | null> {
  const reader = (request.body as ReadableStream<Uint8Array>).getReader()
  const read = new Gathered()
  while (read.byteLength <= mostBytes) {
    const { done, value } = await reader.read()
    if (done) {
      const bytes = read.whole()
      giveBody(request, bytes)
      return bytes
    }
    read.add(bytesIn(value))
  }
  giveBody(request, rest(read.whole(), reader))
  return null
}

type Reader = ReadableStreamDefaultReader<Uint8Array>

/** What was read, and what follows, as fast as it is read. */
function rest(bytes: Uint8Array, reader: Reader): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(bytes),
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(bytesIn(value))
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/**
 * Members of its own, in place of those that it inherits: it stays the object that the handler, or code around it, holds. Only
 * `new Request(request)` and `fetch(request)` see that its first body was read; they refuse it.
 */
function giveBody(request: Request, body: Uint8Array | ReadableStream<Uint8Array>): void {
  const { url, method, headers, signal } = request
  const other: Request & Partial<Record<'bytes', () => Promise<Uint8Array>>> = new Request(url, {
    method,
    headers,
    signal,
    body: body as Sendable,
    duplex: 'half',
  })
  for (const name of ['body', 'bodyUsed'] as const) {
    Object.defineProperty(request, name, { configurable: true, get: () => other[name] })
  }
  for (const name of ['arrayBuffer', 'blob', 'bytes', 'clone', 'formData', 'json', 'text'] as const) {
    Object.defineProperty(request, name, { configurable: true, value: () => other[name]?.() })
  }
}

/** Streams of requests never hold shared memory. */
type Sendable = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>

/** The promise resolves when the request itself is read or cancelled. */
function leave(reader: Reader): void {
  reader.cancel().catch(() => {})
}
