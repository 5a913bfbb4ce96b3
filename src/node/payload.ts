import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { addAbortSignal, finished, PassThrough, Readable } from 'node:stream'
import type { ReadableStream as NodesReadableStream } from 'node:stream/web'
import type { ResponseBody } from '../http/index.js'
import { toBuffer } from './held-body.js'
import { invalidChunkError } from './node-errors.js'

type StreamedPayload = Extract<ResponseBody, { kind: 'streaming' }>
type WebBody = Blob | ReadableStream | Response

/** Whether a framework sends it piece by piece. */
export function isStreamedBody(body: unknown): body is WebBody | NodeJS.ReadableStream {
  return isWeb(body) || typeof (body as Partial<NodeJS.ReadableStream> | null)?.pipe === 'function'
}

function isWeb(body: unknown): body is WebBody {
  return body instanceof Blob || body instanceof ReadableStream || body instanceof Response
}

/** Whether somebody reads it already, so that nobody else can: the framework has its own error for that. */
export function isBeingRead(body: unknown): boolean {
  if (body instanceof Response) return body.bodyUsed || body.body?.locked === true
  return body instanceof ReadableStream && body.locked
}

/**
 * Its bytes, in larger pieces than it was written in. Cancelling, or aborting `until`, destroys the source at once, even while it is
 * waited for.
 */
export function toWebStream(body: WebBody | NodeJS.ReadableStream, until?: AbortSignal): ReadableStream<Uint8Array> {
  const bytes = new SourceBytes(isWeb(body) ? toNodeReadable(body) : body)
  if (until !== undefined) addAbortSignal(until, bytes)
  const pieces = bytes[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await pieces.next()
        if (done) controller.close()
        else controller.enqueue(appendBufferedBytes(value, bytes))
      },
      cancel: () => void bytes.destroy(),
    },
    { highWaterMark: 0 },
  )
}

/** From version 26, Node reads one piece at a time, unless it is asked for so many bytes. */
function appendBufferedBytes(piece: Buffer, bytes: Readable): Buffer {
  const rest: Buffer | null = bytes.readableLength > 0 ? bytes.read(bytes.readableLength) : null
  return rest === null ? piece : Buffer.concat([piece, rest])
}

function toNodeReadable(body: WebBody): Readable {
  const stream = body instanceof Blob ? body.stream() : body instanceof Response ? body.body : body
  return stream === null ? Readable.from([]) : Readable.fromWeb(stream as NodesReadableStream)
}

/** Streams of early Node, and of packages that follow them, have no `destroy`. */
type SourceStream = NodeJS.ReadableStream & { destroy?(): void; close?(): void; abort?(): void }

/**
 * What a source gives, read as frameworks read it, by `pipe`: streams of any age can do that. It gives its text and bytes as
 * bytes, all that is there at once, so that many small pieces cost little. A failure of the source, its end before its end, and
 * a value that is neither, fail it.
 */
class SourceBytes extends PassThrough {
  readonly #source: SourceStream

  constructor(source: SourceStream) {
    super()
    this.#source = source
    this.on('error', ignore) // Whoever reads gets it; before the first read nobody listens.
    finished(source, { readable: true, writable: false }, (error) => {
      if (error) this.destroy(error)
    })
    source.pipe(this)
  }

  /** An exception here would be one of the source's, in an event that nobody has called. */
  override write(chunk: unknown): boolean {
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) return super.write(chunk)
    this.destroy(invalidChunkError())
    return false
  }

  override _destroy(error: Error | null, closed: (error?: Error | null) => void): void {
    const source = this.#source
    if (typeof source.destroy === 'function') source.destroy()
    else if (typeof source.close === 'function') source.close()
    else source.abort?.()
    closed(error)
  }
}

function ignore(): void {}

/** A body as far as it was read, and what follows, as frameworks on Node take it. */
export function toNodePayload(held: ResponseBody, res: ServerResponse): Buffer | Readable {
  return held.kind === 'whole' ? toBuffer(held.bytes) : createPayloadStream(held, res)
}

/**
 * When the client of an event stream leaves, frameworks destroy it, but may leave the response as it is: then that has ended,
 * unless the source has failed. Not a generator, whose end would wait for the next piece, which may never come.
 */
function createPayloadStream({ bytes, reader, next }: StreamedPayload, res: ServerResponse): Readable {
  let held: Buffer | undefined = toBuffer(bytes)
  let ahead: StreamedPayload['next'] | undefined = next
  /** It has ended or failed by itself. */
  let hasStopped = false
  return new Readable({
    read() {
      const first = held
      held = undefined
      if (first !== undefined && first.byteLength > 0) return void this.push(first)
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
