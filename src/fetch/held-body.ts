import type { RequestRun } from '../http/index.js'
import { joined } from './request.js'

/** A body as far as it was read. */
export type HeldBody =
  /** All of it. */
  | { readonly kind: 'whole'; readonly bytes: Uint8Array }
  /** It is still being written, and is more than is kept, or an event stream. */
  | {
      readonly kind: 'streaming'
      readonly chunks: Uint8Array[]
      readonly reader: Source
      readonly next: Promise<Read>
    }

export type Source = ReadableStreamDefaultReader<Uint8Array>
export type Read = Awaited<ReturnType<Source['read']>>

/** Reads a body to its end, or for as long as it may be kept. Rejects with what its source fails with. */
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
  // Too large. One that was given in a piece has ended by now, unless its handler still writes it.
  return (await hasEnded(next))
    ? { kind: 'whole', bytes: joined(chunks, byteLength) }
    : { kind: 'streaming', chunks, reader, next }
}

/** @throws TypeError as reading such a body does by the Fetch standard. */
export function bytesIn(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  throw new TypeError(`The stream of a Response must give bytes (Uint8Array), not values of type ${typeof chunk}.`)
}

async function hasEnded(next: Promise<Read>): Promise<boolean> {
  const turn = new Promise<false>((resolve) => setTimeout(resolve, 0, false))
  return Promise.race([next.then(({ done }) => done), turn])
}
