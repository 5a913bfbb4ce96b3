import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Execution, HeaderPairs, Settled } from '../core/index.js'
import { type Head, type HeadArgument, isCutShort, mayHaveBody, restore, snapshotOf, takeHead } from './head.js'
import { bytesOf, createHeldBody } from './held-body.js'
import * as pretend from './internals.js'
import { alreadyFinished, type Callback, headersSent, refuseDestroyed, refuseLate } from './node-errors.js'
import { drain, giveBack, outletOf } from './outlet.js'
import { sendOpening, sendWhole, type WayOut } from './send.js'
import { GuardedSocket, OutlivingSocket } from './socket-view.js'

/**
 * - `holding`: what the handler writes is kept. Goes on to `ended`, `opening` or `destroyed`.
 * - `ended`: the handler has ended its response; nothing that it still does changes the answer.
 * - `opening`: the answer is too large to keep, or has no end; its record is being completed without it. Goes on to
 *   `streaming`, or, where the record is another's, to `discarding` (`ended` if the handler has ended by then).
 * - `streaming`: the response is the handler's own again.
 * - `discarding`: another answer was sent in its place; what it writes goes nowhere.
 * - `destroyed`: the handler destroyed its response before its end: a failure.
 */
type Stage = 'holding' | 'ended' | 'opening' | 'streaming' | 'discarding' | 'destroyed'

/** What holding a response needs of the middleware. */
export interface HoldOptions {
  /** Headers of this one request, added to whatever is sent. */
  readonly extraHeaders: HeaderPairs
  /** Sends what the record says in place of the handler's answer. */
  readonly sendOther: (settled: Exclude<Settled, { action: 'send' }>, way: WayOut) => void
  /** Hears that sending failed after the record had been settled: what `end` would have thrown at the handler. */
  readonly onError: (error: unknown) => void
}

/**
 * Holds a response from the handler's first byte to its last, has the execution settle it, and only then sends. The
 * response outlives its client: a handler that runs when the client leaves runs on, and its end counts.
 */
export function holdResponse(
  req: IncomingMessage,
  res: ServerResponse,
  execution: Execution,
  { extraHeaders, sendOther, onError }: HoldOptions,
): void {
  const outlet = outletOf(res)
  const { socket: clientSocket } = req
  const before = snapshotOf(res)
  const held = createHeldBody()

  let stage: Stage = 'holding'
  let head: Head | undefined
  const headOf = (): Head => head as Head
  let clientLeft = false // A 'close' is withheld.
  let lifted = false // The response is Node's again.
  let finished = false // 'finish' was emitted.
  let endsAfterOpening = false
  let destroysAfterOpening: { readonly error: Error | undefined } | undefined
  let afterOpening: Callback[] = []

  const outliving = new OutlivingSocket(res)
  pretend.unwatched(res)
  if (pretend.isClosed(res)) withholdClose() // The client left while its key was being claimed.

  // --- what the handler sees
  res.writeHead = ((status: number, reason?: string | HeadArgument, headers?: HeadArgument) => {
    if (head !== undefined) throw headersSent()
    head = takeHead(req, res, before, status, reason, headers, outlet)
    pretend.begun(res)
    if (clientSocket) req.socket = new Proxy(clientSocket, new GuardedSocket(hangUp)) // Adapters may have none.
    return res
  }) as ServerResponse['writeHead']

  res.write = ((chunk: unknown, encoding?: BufferEncoding | Callback | null, callback?: Callback): boolean => {
    const done = typeof encoding === 'function' ? encoding : callback
    switch (stage) {
      case 'holding':
        accept(chunk, encoding)
        if (execution.keepsBody(held.byteLength(), res.getHeader('Content-Type'))) {
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
      case 'destroyed':
        return refuseDestroyed(done)
      case 'discarding':
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
    if (finished) {
      if (done !== undefined) process.nextTick(done, alreadyFinished())
      return res
    }
    // A second end is silent, and one of an abandoned response must not touch the answer that is being sent.
    if (stage === 'ended' || stage === 'discarding' || endsAfterOpening) {
      if (done !== undefined) res.once('finish', done)
      return res
    }
    if (!chunk || typeof chunk === 'function') handOver()
    else accept(chunk, encoding)
    if (done !== undefined) res.once('finish', done)
    pretend.ended(res)
    if (stage === 'holding') {
      stage = 'ended'
      void finish()
    } else if (stage === 'opening') endsAfterOpening = true
    return res
  }) as ServerResponse['end']

  res.flushHeaders = () => {
    if (stage === 'streaming') return outlet.flushHeaders.call(res)
    if (stage !== 'holding') return
    handOver()
    void open()
  }

  res.destroy = (error) => {
    if (stage === 'holding') {
      stage = 'destroyed'
      pretend.destroyed(res)
      void execution.fail().then(() => destroyNow(error))
      return res
    }
    if (stage === 'opening') {
      destroysAfterOpening ??= { error }
      return res
    }
    // Once the handler has ended its response, its client gets it.
    const isOut = stage === 'streaming' || finished
    return isOut ? outlet.destroy.call(res, error) : res
  }

  res.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event === 'finish') finished = true
    // Nobody hangs up too early any more, and whoever counts the requests of a socket tells it by identity.
    if (event === 'finish' || (event === 'close' && lifted)) req.socket = clientSocket
    // A pipelined response has waited for its turn on the connection.
    if (event === 'socket' && !lifted) return outlet.emit.call(res, event, outliving.take(args[0] as Socket))
    if (event !== 'close' || lifted) return outlet.emit.call(res, event, ...args)
    withholdClose()
    return false
  }

  /** The client has left; the handler has not. Node has just set these. */
  function withholdClose(): void {
    clientLeft = true
    pretend.closed(res, false)
    if (stage === 'destroyed') pretend.destroyed(res)
  }

  // --- what becomes of it
  /** Through `res`, so that hooks on the head which were mounted behind the middleware run before the head is read. */
  function handOver(): void {
    if (head === undefined) res.writeHead(res.statusCode)
  }

  function accept(chunk: unknown, encoding: unknown): void {
    const bytes = bytesOf(chunk, encoding)
    handOver()
    if (mayHaveBody(req, res.statusCode)) held.add(bytes)
  }

  async function finish(): Promise<void> {
    const body = held.take()
    const isKept = execution.keepsBody(body.byteLength, res.getHeader('Content-Type')) && !isCutShort(req, res, body)
    const settled = await execution.settle({ ...headOf(), body: isKept ? body : null })
    lift()
    sending(() => {
      if (settled.action === 'send') {
        sendWhole(req, res, headOf(), body, extraHeaders, outlet)
      } else {
        restore(before, res)
        sendOther(settled, { outlet, handlerGoesOn: false })
      }
    })
    closeIfClientLeft()
  }

  async function open(): Promise<void> {
    stage = 'opening'
    const settled = await execution.settle({ ...headOf(), body: null })
    lift()
    sending(() => {
      if (settled.action === 'send') {
        stage = 'streaming'
        const flows = sendOpening(res, headOf(), held.take(), extraHeaders, outlet)
        for (const done of afterOpening) done()
        if (endsAfterOpening) outlet.end.call(res)
        else if (destroysAfterOpening !== undefined) destroyNow(destroysAfterOpening.error)
        else if (flows) drain(res, outlet)
      } else {
        stage = endsAfterOpening ? 'ended' : 'discarding'
        restore(before, res)
        sendOther(settled, { outlet, handlerGoesOn: !endsAfterOpening })
        for (const done of afterOpening) done()
        drain(res, outlet)
      }
    })
    afterOpening = []
    closeIfClientLeft()
  }

  /** A hook on the head may throw, and so may Node. The record stands; the response goes to the application's errors. */
  function sending(send: () => void): void {
    const guarded = req.socket
    req.socket = clientSocket // Hooks on the head look for the socket that they know.
    try {
      send()
      if (!finished) req.socket = guarded
    } catch (error) {
      giveBack(res, outlet)
      if (!res.headersSent) restore(before, res)
      onError(error)
    }
  }

  /** From here on the response is Node's again. */
  function lift(): void {
    lifted = true
    pretend.nothing(res)
    outliving.reveal()
  }

  function destroyNow(error: Error | undefined): void {
    if (!lifted) lift()
    // A pipelined response has no socket yet; Node 24 would leave the connection open for good.
    if (res.socket === null) res.once('socket', (late) => late.destroy(error))
    outlet.destroy.call(res, error)
    closeIfClientLeft()
  }

  /** What was withheld: for its handler the response has come to its end, for its watchers it has closed. */
  function closeIfClientLeft(): void {
    if (!clientLeft) return
    clientLeft = false
    if (stage === 'ended') res.emit('finish')
    pretend.closed(res, true)
    res.emit('close')
  }

  function hangUp(error?: Error): void {
    if (stage === 'ended' && !finished) return
    if (stage === 'holding' || stage === 'opening') res.destroy(error)
    else if (stage !== 'destroyed') clientSocket.destroy(error)
  }
}
