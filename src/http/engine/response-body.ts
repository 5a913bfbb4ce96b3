import type { Answer } from '../../core/record/record.js'
import { isEventStream } from '../answer/answer.js'
import { ByteCollector, toBytes } from '../request/request-body.js'
import type { RequestRun } from './request-run.js'

/** The part of a body that was read. */
export type ResponseBody =
  | { readonly kind: 'whole'; readonly bytes: Uint8Array }
  /** It is still being written, and is larger than the limit, or is an event stream; or it was cut off. */
  | {
      readonly kind: 'streaming'
      readonly bytes: Uint8Array
      readonly reader: Source
      readonly next: Promise<ReadResult>
    }

type Source = ReadableStreamDefaultReader<Uint8Array>
type ReadResult = Awaited<ReturnType<Source['read']>>

/**
 * Reads a body to its end, or as long as it may be kept. Rejects with the error of its source. `length`: what the head announces,
 * where the server sends that as it is. A body with fewer bytes was cut off, for example by its upstream: it is sent so, which its
 * client can tell, and not kept.
 */
export async function readResponseBody(
  body: ReadableStream<Uint8Array> | null,
  run: Pick<RequestRun, 'keepsBody'>,
  contentType: string | null,
  length?: string,
): Promise<ResponseBody> {
  if (body === null) return { kind: 'whole', bytes: new Uint8Array(0) }
  const reader = body.getReader()
  const read = new ByteCollector()
  let next = reader.read()
  let isOver = false
  while (run.keepsBody(read.byteLength, contentType)) {
    const { done, value } = await next
    isOver = done
    if (done) break
    read.add(toBytes(value))
    next = reader.read()
  }
  // If it is too large: a body that was given in one piece has ended by now, unless its handler still writes it.
  isOver ||= await hasEnded(next)
  const bytes = read.concat()
  const isCutOff = Number(length) > bytes.byteLength
  return isOver && !isCutOff ? { kind: 'whole', bytes } : { kind: 'streaming', bytes, reader, next }
}

async function hasEnded(next: Promise<ReadResult>): Promise<boolean> {
  const turn = new Promise<false>((resolve) => setTimeout(resolve, 0, false))
  return Promise.race([next.then(({ done }) => done), turn])
}

type StreamingBody = Extract<ResponseBody, { kind: 'streaming' }>
type Controller = ReadableStreamDefaultController<Uint8Array>

/**
 * A body that leaves while its handler still writes it, as fast as its client reads. Its end leaves only after its record was
 * completed: the end of the stream, or, where the head tells a length, its last byte. When the client leaves, its source is read
 * to the end all the same; only that of an event stream, which may have none, is told (its `cancel`). `signal` tells of it where the
 * stream does not hear of it.
 */
export function createStreamedBody(
  run: RequestRun,
  head: Omit<Answer, 'body'>,
  held: StreamingBody,
  signal?: AbortSignal,
): ReadableStream<Uint8Array> {
  const source = new StreamedBody(run, head, held, signal)
  return new ReadableStream<Uint8Array>(
    { pull: (controller) => source.pull(controller), cancel: (reason) => source.onClientLeft(reason) },
    { highWaterMark: 0 },
  )
}

/** How many chunks of a client that has left are read in one turn. */
const MOST_AT_ONCE = 64

class StreamedBody {
  readonly #run: RequestRun
  readonly #head: Omit<Answer, 'body'>
  readonly #signal: AbortSignal | undefined
  readonly #source: Source
  /** What was read before the answer was found to stream; absent once it was sent. */
  #held: Uint8Array | undefined
  #next: Promise<ReadResult> | undefined
  /** How many bytes may be sent before the end: all but the last of the announced length. */
  #mayLeave: number
  /** What waits for the record. */
  readonly #rest: Uint8Array[] = []
  /** The client has left: nothing is sent any more. */
  #isSwallowed = false
  /** A client may leave without a word to the stream. */
  readonly #whenAborted = () => void this.onClientLeft(this.#signal?.reason)

  constructor(run: RequestRun, head: Omit<Answer, 'body'>, held: StreamingBody, signal: AbortSignal | undefined) {
    this.#run = run
    this.#head = head
    this.#source = held.reader
    this.#held = held.bytes
    this.#next = held.next
    this.#signal = signal
    const length = Number(findHeaderValue(head, 'content-length') ?? Number.POSITIVE_INFINITY)
    this.#mayLeave = length > 0 ? length - 1 : Number.POSITIVE_INFINITY
    if (signal?.aborted) void this.onClientLeft(signal.reason)
    else signal?.addEventListener('abort', this.#whenAborted, { once: true })
  }

  /** Reads until something was sent, or everything. Whoever goes on reading for a client that has left is told that it has. */
  async pull(controller: Controller): Promise<void> {
    try {
      while (!this.#isSwallowed) {
        const chunk = this.#takeHeld() ?? (await this.#read())
        if (this.#isSwallowed) break
        if (chunk === null) return await this.#end(controller)
        const departing = this.#takeSendablePart(chunk)
        if (departing.byteLength > 0) return controller.enqueue(departing)
      }
      controller.error(this.#signal?.reason)
    } catch (error) {
      await this.#failRun()
      controller.error(error)
    }
  }

  async onClientLeft(reason: unknown): Promise<void> {
    if (this.#isSwallowed) return
    this.#isSwallowed = true
    try {
      if (isEventStream(findHeaderValue(this.#head, 'content-type'))) await this.#source.cancel(reason)
      else await this.#readToEnd()
      await this.#settle()
    } catch {
      await this.#failRun()
    }
  }

  #takeHeld(): Uint8Array | undefined {
    const held = this.#held
    this.#held = undefined
    return held
  }

  /** `null`: the end. */
  async #read(): Promise<Uint8Array | null> {
    const next = this.#next ?? this.#source.read()
    this.#next = undefined
    const read = await next
    return read.done ? null : toBytes(read.value)
  }

  /** A source that never waits must not block the process. */
  async #readToEnd(): Promise<void> {
    for (let chunks = 1; (await this.#read()) !== null; chunks++) {
      if (chunks % MOST_AT_ONCE === 0) await new Promise((resolve) => setTimeout(resolve, 0))
    }
  }

  async #end(controller: Controller): Promise<void> {
    const isStored = await this.#settle()
    if (this.#isSwallowed) return controller.error(this.#signal?.reason)
    if (!isStored) return controller.error(new Error('The end of this answer could not be stored, so it is not sent.'))
    for (const chunk of this.#rest) controller.enqueue(chunk)
    controller.close()
  }

  /** Whether the record was completed; a run without a record (`runUnprotected`) needs no confirmation. */
  async #settle(): Promise<boolean> {
    this.#signal?.removeEventListener('abort', this.#whenAborted)
    const terms = this.#run.context.attempt === 0 ? undefined : { confirmed: true }
    const { action } = await this.#run.settle({ ...this.#head, body: null }, terms)
    return action === 'send'
  }

  async #failRun(): Promise<void> {
    this.#signal?.removeEventListener('abort', this.#whenAborted)
    await this.#run.fail()
  }

  /** The part that may be sent now; the rest is kept. */
  #takeSendablePart(bytes: Uint8Array): Uint8Array {
    const departing = bytes.subarray(0, this.#mayLeave)
    if (departing.byteLength < bytes.byteLength) this.#rest.push(bytes.slice(departing.byteLength))
    this.#mayLeave -= departing.byteLength
    return departing
  }
}

function findHeaderValue({ headers }: Pick<Answer, 'headers'>, lowerCaseName: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === lowerCaseName)?.[1]
}
