import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream as NodesReadableStream } from 'node:stream/web'
import type { HeldBody } from '../http/index.js'

type Streaming = Extract<HeldBody, { kind: 'streaming' }>
type Web = Blob | ReadableStream | Response

/** Whether a framework sends it piece by piece. */
export function isStreamed(body: unknown): body is Web | NodeJS.ReadableStream {
  return isWeb(body) || typeof (body as Partial<NodeJS.ReadableStream> | null)?.pipe === 'function'
}

function isWeb(body: unknown): body is Web {
  return body instanceof Blob || body instanceof ReadableStream || body instanceof Response
}

/** Its bytes: a stream of Node's may give text. Cancelling destroys the source at once, even while it is waited for. */
export function streamOf(body: Web | NodeJS.ReadableStream): ReadableStream<Uint8Array> {
  const source = sourceOf(body)
  const chunks = source[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next()
        if (done) controller.close()
        else controller.enqueue(typeof value === 'string' ? Buffer.from(value) : value)
      },
      cancel: () => void source.destroy(),
    },
    { highWaterMark: 0 },
  )
}

function sourceOf(body: Web | NodeJS.ReadableStream): Readable {
  if (body instanceof Readable) return body
  if (!isWeb(body)) return new Readable({ objectMode: true }).wrap(body)
  const stream = body instanceof Blob ? body.stream() : body instanceof Response ? body.body : body
  return stream === null ? Readable.from([]) : Readable.fromWeb(stream as NodesReadableStream)
}

/** A body as far as it was read, and what follows, as frameworks on Node take it. */
export function payloadOf(held: HeldBody, res: ServerResponse): Buffer | Readable {
  return held.kind === 'whole' ? bufferOf(held.bytes) : restOf(held, res)
}

/**
 * When the client of an event stream leaves, frameworks destroy it, but may leave the response as it is: then that has ended,
 * unless the source has failed. Not a generator, whose end would wait for the next piece, which may never come.
 */
function restOf({ chunks, reader, next }: Streaming, res: ServerResponse): Readable {
  let ahead: Streaming['next'] | undefined = next
  /** It has ended or failed by itself. */
  let hasStopped = false
  return new Readable({
    read() {
      const chunk = chunks.shift()
      if (chunk !== undefined) return void this.push(chunk)
      const read = ahead ?? reader.read()
      ahead = undefined
      read.then(
        ({ done, value }) => {
          hasStopped ||= done && !this.destroyed
          this.push(done ? null : value)
        },
        (error: Error) => {
          hasStopped ||= !this.destroyed
          this.destroy(error)
        },
      )
    },
    destroy(error, closed) {
      reader.cancel().catch(() => {}) // It may have failed.
      if (res.closed && !hasStopped) res.end()
      closed(error)
    },
  })
}

export function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
