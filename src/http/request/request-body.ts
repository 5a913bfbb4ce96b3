import { Buffer, isUtf8 } from 'node:buffer'
import { IdempotencyError } from '../../core/errors.js'
import { parseJsonExactly } from '../../core/json.js'
import { isWithoutBody, type ResolvedOptions } from '../options/options.js'
import { getContentType, getFirstHeaderLine, hasMembers, isJson, type RequestFacts } from './facts.js'
import { findKeyHeader } from './key.js'

/** Whether what is decided on a request depends on its body: its fingerprint does, or the deprecated place of its key. */
export function shouldReadBody<Req>(
  head: Pick<RequestFacts, 'method' | 'rawHeaders' | 'headers'>,
  { methods, header, legacyKey, fingerprint }: ResolvedOptions<Req>,
): boolean {
  if (!methods.includes(head.method)) return false
  if (legacyKey !== undefined && hasMembers(getContentType(head))) return true
  if (fingerprint !== undefined && isWithoutBody(fingerprint)) return false
  return findKeyHeader(head, header.toLowerCase()) !== null
}

/** What a binding that reads bodies itself tells of one. */
export type ReadBody = Pick<RequestFacts, 'body' | 'bodyWasRead' | 'bodyIsEmpty' | 'bodyFault'>

/**
 * A body's bytes as requests are compared by them, whichever binding has read them: JSON and forms by their members, anything
 * else by its bytes. To be compared alone: a number that a double does not hold is an object there.
 */
export function parseComparableBody(bytes: Uint8Array, rawHeaders: readonly string[]): ReadBody {
  const contentType = getContentType({ rawHeaders })
  const canHaveMembers = hasMembers(contentType) || isJson(contentType)
  const isAbsent = canHaveMembers || contentType === '' || !isAnnounced(rawHeaders)
  if (bytes.byteLength === 0 && isAbsent) return { body: undefined, bodyWasRead: true, bodyIsEmpty: true }
  if (!canHaveMembers) return { body: bytes, bodyWasRead: true }
  if (!isUtf8(bytes)) return toMalformedBody(bytes) // All invalid bytes would be read as the same character.
  const text = new TextDecoder().decode(bytes) // Without a byte order mark, as `request.json()`.
  if (!isJson(contentType)) return parseFormBody(text, bytes)
  try {
    // `null` is data like any other, and not an absent body.
    return { body: parseJsonExactly(text) ?? bytes, bodyWasRead: true }
  } catch {
    return toMalformedBody(bytes)
  }
}

function parseFormBody(text: string, bytes: Uint8Array): ReadBody {
  if (hasTooManyFields(text)) return { body: undefined, bodyWasRead: true, bodyFault: 'too_many_fields' }
  const escaped = text.match(/(?:%[\da-f]{2})+/gi) ?? []
  if (!escaped.every(isPercentEncodedUtf8)) return toMalformedBody(bytes)
  const fields = parseFormFields(text)
  return { body: fields, bodyWasRead: true, ...(Object.keys(fields).length === 0 && { bodyIsEmpty: true }) }
}

/** Whether the escaped bytes are valid UTF-8. */
function isPercentEncodedUtf8(escaped: string): boolean {
  try {
    decodeURIComponent(escaped)
    return true
  } catch {
    return false
  }
}

function toMalformedBody(bytes: Uint8Array): ReadBody {
  return { body: bytes, bodyWasRead: true, bodyFault: 'malformed' }
}

/** Where a body is announced, parsers give as bytes what has none. */
function isAnnounced(rawHeaders: readonly string[]): boolean {
  return ['content-length', 'transfer-encoding'].some((name) => getFirstHeaderLine({ rawHeaders }, name) !== undefined)
}

/** As in Express, whose parser counts the same way. */
const MOST_FIELDS = 1_000

export const TOO_MANY_FIELDS_DETAIL = 'A form may have at most 1,000 fields.'

function hasTooManyFields(text: string): boolean {
  let fields = 1
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1)) {
    if (++fields > MOST_FIELDS) return true
  }
  return false
}

/** A form by its fields; one that comes several times is a list. */
function parseFormFields(text: string): object {
  const fields: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of new URLSearchParams(text)) {
    const known = fields[name]
    if (known === undefined) fields[name] = value
    else if (typeof known === 'string') fields[name] = [known, value]
    else known.push(value)
  }
  return fields
}

/**
 * The bytes of a request's body; `null`: there are more than so many; `undefined`: it has none. The request stays unread for its
 * handler. Rejects with what the body's source fails with.
 *
 * @throws IdempotencyError (rejects) `raw_body_consumed`: it can be read only once.
 */
export async function readBodyCopy(request: Request, mostBytes: number): Promise<Uint8Array | null | undefined> {
  const copy = cloneIfPossible(request)
  const reader = toBodyStream(copy)?.getReader()
  if (reader === undefined) return undefined
  // The copy of another package may be the request itself, or share its stream.
  if (copy === request || request.body?.locked) return readAndRestoreBody(request, reader, mostBytes)
  const read = new ByteCollector()
  for (let pieces = 0; pieces < MOST_PIECES; pieces++) {
    const { done, value } = await reader.read()
    if (done) return read.concat()
    read.add(toBytes(value))
    if (read.byteLength > mostBytes) {
      cancelReader(reader)
      return null
    }
  }
  cancelReader(reader)
  return readAndRestoreBody(request, (request.body as Body).getReader(), mostBytes)
}

/**
 * What is read of a copy waits for the handler in the same pieces, in an array of which Node removes the first: in time quadratic in their
 * number. Bodies of JSON or forms arrive in fewer, unless a client sends very small ones.
 */
const MOST_PIECES = 4_096

function cloneIfPossible(request: Request): Request {
  try {
    return request.clone()
  } catch {
    return request // Of a package without copies: it is read itself.
  }
}

/** Reads the request's own body, and gives it the bytes in one piece. */
async function readAndRestoreBody(request: Request, reader: Reader, mostBytes: number): Promise<Uint8Array | null> {
  const read = new ByteCollector()
  while (read.byteLength <= mostBytes) {
    const { done, value } = await reader.read()
    if (done) {
      const bytes = read.concat()
      giveBody(request, bytes)
      return bytes
    }
    read.add(toBytes(value))
  }
  giveBody(request, createContinuedStream(read.concat(), reader))
  return null
}

type Reader = ReadableStreamDefaultReader<Uint8Array>

/** What was read, and what follows, as fast as it is read. */
function createContinuedStream(bytes: Uint8Array, reader: Reader): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(bytes),
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(toBytes(value))
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
  const other: Request & Partial<Record<'buffer' | 'bytes', () => Promise<Uint8Array>>> = new Request(url, {
    method,
    headers: [...headers],
    signal: signal instanceof AbortSignal ? signal : null,
    body: body as SendableBody,
    duplex: 'half',
  })
  other.buffer = async () => Buffer.from(await other.arrayBuffer()) // As packages that follow node-fetch have it.
  try {
    for (const name of ['body', 'bodyUsed'] as const) {
      Object.defineProperty(request, name, { configurable: true, get: () => other[name] })
    }
    for (const name of [...READERS, ...('buffer' in request ? (['buffer'] as const) : [])]) {
      Object.defineProperty(request, name, { configurable: true, value: () => other[name]?.() })
    }
  } catch (cause) {
    throw bodyReadOnceError(cause)
  }
}

const READERS = ['arrayBuffer', 'blob', 'bytes', 'clone', 'formData', 'json', 'text'] as const

function bodyReadOnceError(cause: unknown): IdempotencyError {
  return new IdempotencyError(
    'raw_body_consumed',
    "The request's body can be read only once, because its `clone()` is no copy, and the request cannot be changed. So its handler would " +
      'get no body. Pass a request of the platform, or one whose copies can be read.',
    { cause },
  )
}

/** Streams of requests never hold shared memory. */
type SendableBody = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>

/** The promise resolves when the request itself is read or cancelled. */
function cancelReader(reader: Reader): void {
  reader.cancel().catch(() => {})
}

/**
 * Bytes that arrive in pieces, as one block. Each is copied a bounded number of times, and a piece of one byte takes one byte: an array of
 * the pieces would take a hundred.
 */
export class ByteCollector {
  /** As long as there is one piece, that piece; never written to then. */
  #block: Uint8Array = NOTHING
  #byteLength = 0

  get byteLength(): number {
    return this.#byteLength
  }

  add(piece: Uint8Array): void {
    const byteLength = this.#byteLength + piece.byteLength
    if (this.#byteLength === 0) this.#block = piece
    else {
      if (byteLength > this.#block.byteLength) this.#grow(Math.max(byteLength, 2 * this.#block.byteLength))
      this.#block.set(piece, this.#byteLength)
    }
    this.#byteLength = byteLength
  }

  /** All of them. Nothing may be added behind it. */
  concat(): Uint8Array {
    return this.#block.byteLength === this.#byteLength ? this.#block : this.#block.slice(0, this.#byteLength)
  }

  #grow(byteLength: number): void {
    const block = new Uint8Array(byteLength)
    block.set(this.#block.subarray(0, this.#byteLength))
    this.#block = block
  }
}

const NOTHING = new Uint8Array(0)

/**
 * A chunk of a body's stream. Text counts as its UTF-8, as servers send it.
 *
 * @throws TypeError for other values, as reading such a body does by the Fetch standard.
 */
export function toBytes(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  if (typeof chunk === 'string') return UTF_8.encode(chunk)
  throw new TypeError(`A body's stream must yield bytes (Uint8Array) or text, not values of type ${typeof chunk}.`)
}

const UTF_8 = new TextEncoder()

type Body = ReadableStream<Uint8Array>
type ByteIterable = AsyncIterable<Uint8Array> & { destroy?(): void }

/**
 * The body of a request or a response as a stream; `null`: it has none. Packages for older platforms have a stream of Node, or show no
 * stream at all.
 */
export function toBodyStream(message: Request | Response): Body | null {
  const body: unknown = message.body
  if (body === null || typeof (body as Partial<Body> | undefined)?.getReader === 'function') return body as Body | null
  return toByteStream(isIterable(body) ? body : iterateWholeBody(message))
}

function isIterable(body: unknown): body is ByteIterable {
  return typeof (body as Partial<ByteIterable> | undefined)?.[Symbol.asyncIterator] === 'function'
}

async function* iterateWholeBody(message: Request | Response): AsyncIterable<Uint8Array> {
  yield new Uint8Array(await message.arrayBuffer())
}

function toByteStream(pieces: ByteIterable): Body {
  const iterator = pieces[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: () => void (pieces.destroy === undefined ? iterator.return?.() : pieces.destroy()),
    },
    { highWaterMark: 0 },
  )
}

/** A body's bytes; `null`: there are more than so many. Rejects with what its source fails with. */
export async function readAtMost(body: ReadableStream<Uint8Array>, mostBytes: number): Promise<Uint8Array | null> {
  const reader = body.getReader()
  const read = new ByteCollector()
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    read.add(toBytes(next.value))
    if (read.byteLength <= mostBytes) continue
    cancelReader(reader)
    return null
  }
  return read.concat()
}
