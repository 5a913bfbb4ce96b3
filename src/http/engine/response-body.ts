import { bytesIn, Gathered } from '../request/gathered.js'
import type { RequestRun } from './request-run.js'

/** The part of a body that was read. */
export type ResponseBody =
  /** All of it. */
  | { readonly kind: 'whole'; readonly bytes: Uint8Array }
  /** It is still being written, and is larger than the limit, or is an event stream. */
  | {
      readonly kind: 'streaming'
      /** What was read of it. */
      readonly bytes: Uint8Array
      readonly reader: Source
      readonly next: Promise<Read>
    }

export type Source = ReadableStreamDefaultReader<Uint8Array>
export type Read = Awaited<ReturnType<Source['read']>>

/** Reads a body to its end, or as long as it may be kept. Rejects with the error of its source. */
export async function readResponseBody(
  body: ReadableStream<Uint8Array> | null,
  run: Pick<RequestRun, 'keepsBody'>,
  contentType: string | null,
): Promise<ResponseBody> {
  if (body === null) return { kind: 'whole', bytes: new Uint8Array(0) }
  const reader = body.getReader()
  const read = new Gathered()
  let next = reader.read()
  while (run.keepsBody(read.byteLength, contentType)) {
    const { done, value } = await next
    if (done) return { kind: 'whole', bytes: read.whole() }
    read.add(bytesIn(value))
    next = reader.read()
  }
  // Too large. A body that was given in one piece has ended by now, unless its handler still writes it.
  const bytes = read.whole()
  return (await hasEnded(next)) ? { kind: 'whole', bytes } : { kind: 'streaming', bytes, reader, next }
}

async function hasEnded(next: Promise<Read>): Promise<boolean> {
  const turn = new Promise<false>((resolve) => setTimeout(resolve, 0, false))
  return Promise.race([next.then(({ done }) => done), turn])
}
