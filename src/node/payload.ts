import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import type { HeldBody } from '../http/index.js'

/** What a framework sends piece by piece; `null`: it is no stream. */
export function sourceOf(body: unknown): AsyncIterable<unknown> | null {
  if (body instanceof Blob) return body.stream()
  if (body instanceof ReadableStream) return body
  if (body instanceof Response) return body.body ?? Readable.from([])
  if (!isStream(body)) return null
  return body instanceof Readable ? body : new Readable({ objectMode: true }).wrap(body)
}

function isStream(body: unknown): body is NodeJS.ReadableStream {
  return typeof (body as Partial<NodeJS.ReadableStream> | null)?.pipe === 'function'
}

/** Its bytes: a stream of Node's may give text. */
export function streamOf(source: AsyncIterable<unknown>): ReadableStream<Uint8Array> {
  return ReadableStream.from(bytesIn(source))
}

async function* bytesIn(source: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) yield typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Uint8Array)
}

/** A body as far as it was read, and what follows, as frameworks on Node take it. */
export function payloadOf(held: HeldBody): Buffer | Readable {
  return held.kind === 'whole' ? bufferOf(held.bytes) : Readable.from(restOf(held), { objectMode: false })
}

async function* restOf({ chunks, reader, next }: Extract<HeldBody, { kind: 'streaming' }>): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
    for (let read = await next; !read.done; read = await reader.read()) yield read.value
  } finally {
    reader.cancel().catch(() => {}) // Its client has left, or it has ended.
  }
}

export function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
