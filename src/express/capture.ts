import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isEventStream } from '../core/answer.js'
import type { Execution, HeaderPairs, Settled } from '../core/index.js'
import { changedSince, type HeadArgument, restore, setHeadArgument, snapshotOf } from './head.js'
import { mayHaveBody, type Outlet, outletOf, sendBody, sendHead } from './send.js'
import { guardedView, outlivingView } from './socket-view.js'

/**
 * - `holding`: what the handler writes is kept.
 * - `ended`: the handler has ended its response; nothing that it still does changes the answer.
 * - `opening`: the answer is too large to keep, or has no end; its record is being completed without it.
 * - `streaming`: the response is the handler's own again.
 * - `discarding`: another answer was sent in its place; what it writes goes nowhere.
 * - `destroyed`: the handler destroyed its response before its end.
 */
type Stage = 'holding' | 'ended' | 'opening' | 'streaming' | 'discarding' | 'destroyed'

interface Head {
  readonly status: number
  readonly statusMessage: string
  readonly headers: HeaderPairs
}

type Callback = (error?: Error | null) => void

/** Fields of Node's that say whether a response has begun, ended or closed; most middleware reads them as well. */
interface Internals {
  /** Truthy: the head was handed over, so setters throw and `headersSent` is true. */
  _header: string | null
  _closed: boolean
  /** `writableEnded` reads it. */
  finished: boolean
  destroyed: boolean
  socket: Socket | null
}

/**
 * Holds a response from the handler's first byte to its last, has the execution settle it, and only then sends. The
 * response outlives its client: a handler that runs when the client leaves runs on, and its end counts.
 */
export function holdResponse(
  req: IncomingMessage,
  res: ServerResponse,
  execution: Execution,
  extraHeaders: HeaderPairs = [],
  sendOther: (settled: Exclude<Settled, { action: 'send' }>, outlet: Outlet) => void,
): void {
  const outlet = outletOf(res)
  const { flushHeaders, destroy, emit } = res
  const internals = res as unknown as Internals
  const before = snapshotOf(res)

  let stage: Stage = 'holding'
  let head: Head | undefined
  let chunks: Buffer[] = []
  let heldBytes = 0
  let clientLeft = false
  let lifted = false
  let endsAfterOpening = false
  let destroysAfterOpening: { readonly error: Error | undefined } | undefined
  let afterOpening: Callback[] = []

  const socket = internals.socket
  const held = socket && outlivingView(socket, (error) => void res.destroy(error))
  if (held !== null) internals.socket = held.view

  // --- what the handler sees

  res.writeHead = ((status: number, reason?: string | HeadArgument, headers?: HeadArgument) => {
    if (head !== undefined) {
      // compression and express-session write the implied head again and again; an explicit second one is a mistake.
      if (status === head.status && reason === undefined && headers === undefined) return res
      throw nodeError(Error, 'ERR_HTTP_HEADERS_SENT', 'Cannot write headers after they are sent to the client')
    }
    if (!(status >= 100 && status <= 999)) {
      throw nodeError(RangeError, 'ERR_HTTP_INVALID_STATUS_CODE', `Invalid status code: ${status}`)
    }
    const statusMessage = typeof reason === 'string' ? reason : (res.statusMessage ?? '')
    if (/[^\t\x20-\x7e\x80-\xff]/.test(statusMessage)) {
      throw nodeError(TypeError, 'ERR_INVALID_CHAR', 'Invalid character in statusMessage')
    }
    const given = typeof reason === 'string' ? headers : (headers ?? reason)
    if (given !== undefined && given !== null) setHeadArgument(res, given)
    res.statusCode = Math.trunc(status)
    const keepLength = !mayHaveBody(req, res.statusCode)
    head = { status: res.statusCode, statusMessage, headers: changedSince(before, res, keepLength) }
    internals._header = HELD
    req.socket = guardedView(req.socket, hangUp)
    return res
  }) as ServerResponse['writeHead']

  res.write = ((chunk: unknown, encoding?: BufferEncoding | Callback | null, callback?: Callback): boolean => {
    const done = typeof encoding === 'function' ? encoding : callback
    switch (stage) {
      case 'holding':
        accept(chunk, encoding)
        if (heldBytes <= execution.maxAnswerBytes && !isEventStream(res.getHeader('Content-Type'))) {
          if (done !== undefined) process.nextTick(done)
          return true
        }
        if (done !== undefined) afterOpening.push(done)
        void open()
        return false
      case 'opening':
        if (endsAfterOpening) return refuseLate(done)
        accept(chunk, encoding)
        if (done !== undefined) afterOpening.push(done)
        return false
      case 'ended':
        return refuseLate(done)
      case 'discarding':
      case 'destroyed':
        if (done !== undefined) process.nextTick(done)
        return true
      case 'streaming':
        return outlet.write.call(res, chunk, encoding, callback)
    }
  }) as ServerResponse['write']

  res.end = ((chunk?: unknown, encoding?: BufferEncoding | Callback | null, callback?: Callback): ServerResponse => {
    const done =
      typeof chunk === 'function' ? (chunk as Callback) : typeof encoding === 'function' ? encoding : callback
    if (stage === 'streaming') return outlet.end.call(res, chunk, encoding, callback)
    if (stage === 'ended' || endsAfterOpening) {
      if (done !== undefined) res.once('finish', done) // A second end is silent.
      return res
    }
    if (chunk === undefined || chunk === null || typeof chunk === 'function') handOver()
    else accept(chunk, encoding)
    if (done !== undefined) res.once('finish', done)
    internals.finished = true
    if (stage === 'holding') {
      stage = 'ended'
      void finish()
    } else if (stage === 'opening') endsAfterOpening = true
    return res
  }) as ServerResponse['end']

  res.flushHeaders = () => {
    if (stage === 'streaming') return flushHeaders.call(res)
    if (stage !== 'holding') return
    handOver()
    void open()
  }

  res.destroy = (error) => {
    if (stage === 'holding') {
      stage = 'destroyed'
      internals.destroyed = true
      void execution.fail().then(() => destroyNow(error))
      return res
    }
    if (stage === 'opening') {
      destroysAfterOpening ??= { error }
      return res
    }
    // Once the handler has ended its response, its client gets it.
    const isOut = stage === 'streaming' || res.writableFinished
    return isOut ? destroy.call(res, error) : res
  }

  res.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event !== 'close' || lifted) return emit.call(res, event, ...args)
    // The client has left; the handler has not. Node set these just before.
    clientLeft = true
    internals.destroyed = stage === 'destroyed'
    internals._closed = false
    return false
  }

  // --- what becomes of it

  /** Through `res`, so that hooks on the head which were mounted behind the middleware run before the head is read. */
  function handOver(): void {
    if (head === undefined) res.writeHead(res.statusCode)
  }

  function accept(chunk: unknown, encoding: unknown): void {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) {
      throw nodeError(
        TypeError,
        'ERR_INVALID_ARG_TYPE',
        'The "chunk" argument must be a string, a Buffer or a Uint8Array',
      )
    }
    handOver()
    if (!mayHaveBody(req, res.statusCode)) return
    // A copy: the caller may reuse its buffer before the response is sent.
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encodingOf(encoding)) : Buffer.from(chunk)
    chunks.push(bytes)
    heldBytes += bytes.byteLength
  }

  async function finish(): Promise<void> {
    const body = takeBody()
    const settled = await settle(body.byteLength <= execution.maxAnswerBytes ? body : null)
    lift()
    if (settled.action === 'send') {
      if (mayHaveBody(req, headOf().status)) {
        res.removeHeader('Transfer-Encoding')
        res.setHeader('Content-Length', body.byteLength)
      }
      sendOwnHead()
      sendBody(res, body, outlet)
    } else {
      restore(before, res)
      sendOther(settled, outlet)
    }
    closeIfClientLeft()
  }

  async function open(): Promise<void> {
    stage = 'opening'
    const settled = await settle(null)
    lift()
    if (settled.action === 'send') {
      stage = 'streaming'
      sendOwnHead()
      const body = takeBody()
      let flows = true
      if (body.byteLength === 0) flushHeaders.call(res)
      else flows = outlet.write.call(res, body)
      for (const done of afterOpening) done()
      if (endsAfterOpening) outlet.end.call(res)
      else if (destroysAfterOpening !== undefined) destroyNow(destroysAfterOpening.error)
      else if (flows) res.emit('drain')
    } else {
      stage = endsAfterOpening ? 'ended' : 'discarding'
      restore(before, res)
      sendOther(settled, outlet)
      for (const done of afterOpening) done()
      res.emit('drain')
    }
    afterOpening = []
    closeIfClientLeft()
  }

  function settle(body: Buffer | null): Promise<Settled> {
    return execution.settle({ ...headOf(), body })
  }

  function sendOwnHead(): void {
    const { status, statusMessage } = headOf()
    sendHead(res, status, statusMessage, extraHeaders, outlet)
  }

  function headOf(): Head {
    return head as Head
  }

  function takeBody(): Buffer {
    const [first = NO_BYTES, second] = chunks
    const body = second === undefined ? first : Buffer.concat(chunks)
    chunks = []
    return body
  }

  /** From here on the response is Node's again. */
  function lift(): void {
    lifted = true
    internals._header = null
    internals.finished = false
    internals.destroyed = false
    if (held === null) return
    if (internals.socket === held.view) internals.socket = socket
    held.reveal()
  }

  function destroyNow(error: Error | undefined): void {
    if (!lifted) lift()
    destroy.call(res, error)
    closeIfClientLeft()
  }

  /** What was withheld: for its handler the response has come to its end, for its watchers it has closed. */
  function closeIfClientLeft(): void {
    if (!clientLeft) return
    clientLeft = false
    if (stage === 'ended') res.emit('finish')
    internals.destroyed = true
    internals._closed = true
    res.emit('close')
  }

  function hangUp(): void {
    if (stage === 'ended' && !res.writableFinished) return
    if (stage === 'holding' || stage === 'opening') res.destroy()
    else if (stage !== 'destroyed') socket?.destroy()
  }
}

const HELD = 'HTTP/1.1 held'
const NO_BYTES = Buffer.alloc(0)

function refuseLate(done: Callback | undefined): boolean {
  if (done !== undefined) process.nextTick(done, nodeError(Error, 'ERR_STREAM_WRITE_AFTER_END', 'write after end'))
  return false
}

function encodingOf(encoding: unknown): BufferEncoding {
  return typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'
}

/** As Node throws it, so that handlers which look at the code keep working. */
function nodeError(Kind: typeof Error | typeof TypeError | typeof RangeError, code: string, message: string): Error {
  return Object.assign(new Kind(message), { code })
}
