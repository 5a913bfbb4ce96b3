import type { RequestRun } from './request-run.js'

/** The part of a body that was read. */
export type HeldBody =
  /** All of it. */
  | { readonly kind: 'whole'; readonly bytes: Uint8Array }
  /** It is still being written, and is larger than the limit, or is an event stream. */
  | {
      readonly kind: 'streaming'
      readonly chunks: Uint8Array[]
      readonly reader: Source
      readonly next: Promise<Read>
    }

export type Source = ReadableStreamDefaultReader<Uint8Array>
export type Read = Awaited<ReturnType<Source['read']>>

/** Reads a body to its end, or as long as it may be kept. Rejects with the error of its source. */
export async function heldBody(
  body: ReadableStream<Uint8Array> | null,
  run: Pick<RequestRun, 'keepsBody'>,
  contentType: string | null,
): Promise<HeldBody> {
  if (body === null) return { kind: 'whole', bytes: new Uint8Array(0) }
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let byteLength = 0
  let next = reader.read()
  while (run.keepsBody(byteLength, contentType)) {
    const read = await next
    if (read.done) return { kind: 'whole', bytes: joined(chunks, byteLength) }
    chunks.push(bytesIn(read.value))
    byteLength += read.value.byteLength
    next = reader.read()
  }
  // Too large. A body that was given in one piece has ended by now, unless its handler still writes it.
  return (await hasEnded(next))
    ? { kind: 'whole', bytes: joined(chunks, byteLength) }
    : { kind: 'streaming', chunks, reader, next }
}

/** @throws TypeError, as reading such a body does by the Fetch standard. */
export function bytesIn(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  throw new TypeError(`The stream of a Response must give bytes (Uint8Array), not values of type ${typeof chunk}.`)
}

async function hasEnded(next: Promise<Read>): Promise<boolean> {
  const turn = new Promise<false>((resolve) => setTimeout(resolve, 0, false))
  return Promise.race([next.then(({ done }) => done), turn])
}

/** A body's bytes; `null`: there are more than so many. Rejects with what its source fails with. */
export async function readAtMost(body: ReadableStream<Uint8Array>, mostBytes: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let byteLength = 0
  const reader = body.getReader()
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    byteLength += next.value.byteLength
    if (byteLength > mostBytes) {
      reader.cancel().catch(() => {}) // It resolves when the request itself is read or cancelled.
      return null
    }
    chunks.push(next.value)
  }
  return joined(chunks, byteLength)
}

function joined(chunks: readonly Uint8Array[], byteLength: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(byteLength)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  return bytes
}
