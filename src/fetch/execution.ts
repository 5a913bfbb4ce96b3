import {
  type Answer,
  describeKind,
  type MaybePromise,
  mountedTwiceError,
  transactionLateError,
  transactionStreamedError,
  whenever,
} from '../core/index.js'
import {
  type AnswerBuffer,
  createStreamedBody,
  type Decision,
  type HeaderPairs,
  isReply,
  type Reply,
  type RequestEnd,
  type RequestEngine,
  type RequestRun,
  type ResponseBody,
  readResponseBody,
  waitFor,
} from '../http/index.js'
import {
  canBeBuffered,
  isResponse,
  isSentByNode,
  type ResponseParts,
  readResponse,
  readResponseCopy,
  rebuildResponse,
  toResponse,
  toStoredHead,
} from './answer.js'
import { createRequestFacts, type FetchCall } from './request.js'

type ExecuteDecision = Extract<Decision, { action: 'execute' }>
/** What to send according to the record, instead of the handler's answer. */
type Replacement = Exclude<RequestEnd, { action: 'send' }>
type Handler = (run: RequestRun) => Promise<Response> | Response

function createReplacementResponse<Req>(
  engine: RequestEngine<Req>,
  { request, asked, headers }: FetchCall<Req>,
  decided: Replacement,
  extraHeaders?: HeaderPairs,
  before: Headers | undefined = headers?.(),
): Response {
  return toResponse(engine.answerFor(decided, asked), request.method, extraHeaders, before)
}

/** A response that was read completely and passed to the run. */
interface SettledResponse {
  readonly response: ResponseParts
  readonly bytes: Uint8Array
  readonly settled: MaybePromise<RequestEnd>
}

class FetchExecution<Req> implements AnswerBuffer {
  readonly #engine: RequestEngine<Req>
  readonly #run: RequestRun
  readonly #extraHeaders: HeaderPairs
  readonly #call: FetchCall<Req>
  /** The response's headers before the handler. */
  readonly #before: Headers | undefined
  #hasReturned = false
  /** A transaction's answer: nothing that the handler does later changes it. */
  #given: SettledResponse | undefined
  /** A transaction's answer that is being read. */
  #reading: ResponseParts | undefined
  readonly answersByReturning = true

  constructor(engine: RequestEngine<Req>, { run, extraHeaders = [] }: ExecuteDecision, call: FetchCall<Req>) {
    this.#engine = engine
    this.#run = run
    this.#extraHeaders = extraHeaders
    this.#call = call
    this.#before = call.headers?.()
    run.registerBuffer(this)
  }

  /**
   * Runs a handler, and resolves with the response to send after its record was settled: the handler's own, or its
   * replacement. Rejects with what the handler threw; a thrown Response that will be sent counts as its answer.
   */
  async runHandler(handler: Handler): Promise<Response> {
    try {
      const returned: unknown = await handler(this.#run)
      this.#hasReturned = true
      if (this.#given !== undefined) return await this.#send(this.#given)
      if (isResponse(returned)) return await this.#answer(returned)
      throw new TypeError(`The handler returned ${describeKind(returned)}, not a Response.`)
    } catch (error) {
      this.#hasReturned = true
      if (this.#given !== undefined) return await this.#send(this.#given)
      if (this.#call.sendsThrown && isResponse(error)) {
        this.#run.reportError(error)
        throw await this.#answer(error).catch((unreadable) => this.#fail(unreadable))
      }
      return await this.#fail(error)
    }
  }

  /** A success of another attempt may replace the error. */
  async #fail(error: unknown): Promise<Response> {
    this.#run.reportError(error)
    const settled = await this.#run.fail()
    if (settled.action === 'send') throw error
    return this.#createReplacement(settled)
  }

  async #answer(returned: Response): Promise<Response> {
    if (!canBeBuffered(returned)) {
      await this.#run.fail()
      return returned
    }
    const response = readResponse(returned)
    if (isSentByNode(response)) {
      await this.#run.settle({ ...this.#toStoredHead(response), body: null }) // Nobody has seen it, and it may be a success.
      return returned
    }
    const body = await this.#readResponseBody(response)
    if (body.kind === 'whole') return this.#send(this.#give(response, body.bytes))
    const stream = createStreamedBody(this.#run, this.#toStoredHead(response), body, this.#call.request.signal)
    return rebuildResponse(response, stream, this.#call.request.method, this.#extraHeaders)
  }

  #toStoredHead(response: ResponseParts): Omit<Answer, 'body'> {
    return toStoredHead(response, this.#before)
  }

  #readResponseBody(response: ResponseParts): Promise<ResponseBody> {
    const body = this.#call.request.method === 'HEAD' ? null : response.body // After HEAD none is sent.
    return readResponseBody(body, this.#run, response.headers.get('Content-Type'))
  }

  #give(response: ResponseParts, bytes: Uint8Array): SettledResponse {
    const isKept = this.#run.keepsBody(bytes.byteLength, response.headers.get('Content-Type'))
    const answer: Answer = { ...this.#toStoredHead(response), body: isKept ? bytes : null }
    return { response, bytes, settled: this.#run.settle(answer) }
  }

  #send({ response, bytes, settled }: SettledResponse): MaybePromise<Response> {
    this.#run.stopped()
    return whenever(settled, (end) =>
      end.action === 'send'
        ? rebuildResponse(response, bytes, this.#call.request.method, this.#extraHeaders)
        : this.#createReplacement(end),
    )
  }

  #createReplacement(decided: Replacement): Response {
    return createReplacementResponse(this.#engine, this.#call, decided, this.#extraHeaders, this.#before)
  }

  // --- in a transaction of the handler

  onTransactionBegin(): void {
    if (this.#hasReturned) throw transactionLateError()
  }

  onRollback(): void {
    this.#given = undefined
    this.#reading = undefined
  }

  /** The Response that the work returns is the answer, or its `reply`, which needs no waiting. */
  onWorkResolved(value: unknown): MaybePromise<void> {
    if (isReply(value)) this.#settleWithReply(value)
    else if (isResponse(value)) return this.#settleWithResponse(value)
  }

  #settleWithReply({ status, body, headers }: Reply): void {
    const response = new Response(null, { status, headers: headers.map(([name, value]) => [name, value]) })
    this.#given = this.#give(response, body ?? new Uint8Array(0))
  }

  /** It stays unread, for code that reads it later. */
  async #settleWithResponse(value: Response): Promise<void> {
    if (!canBeBuffered(value)) return
    const copy = readResponseCopy(value)
    if (isSentByNode(copy)) throw transactionStreamedError()
    this.#reading = copy
    const body = await this.#readResponseBody(copy)
    if (this.#reading !== copy) return // The transaction was rolled back meanwhile.
    const isKept = body.kind === 'whole' && this.#run.keepsBody(body.bytes.byteLength, copy.headers.get('Content-Type'))
    if (!isKept) throw transactionStreamedError()
    this.#given = this.#give(copy, body.bytes)
  }
}

/**
 * Carries out the decision on a request: passes it on unchanged, runs it, or responds instead of the handler.
 *
 * Rejects with what the handler threw, after its record was settled; with an IdempotencyError for misuse: the handler
 * did not run, and nothing was stored.
 */
export async function handleFetchRequest<Req, Passed>(
  engine: RequestEngine<Req>,
  call: FetchCall<Req>,
  passes: () => Passed,
  runs: Handler,
): Promise<Response | Awaited<Passed>> {
  const { request } = call
  if (RUNNING.has(request)) throw mountedTwiceError()
  const facts = createRequestFacts(engine, call)
  const decided = engine.decide(facts instanceof Promise ? await facts : facts)
  if (!(decided instanceof Promise) && decided.action === 'bypass') return await passes()
  const platform = { waitUntil: call.waitUntil() }
  let over = doNothing
  waitFor(platform, () => new Promise((resolve) => (over = resolve))) // A client that leaves must not end its handler.
  try {
    const decision = decided instanceof Promise ? await decided : decided
    switch (decision.action) {
      case 'bypass':
        return await passes()
      case 'execute': {
        const { run } = decision
        waitFor(platform, () => run.ended())
        RUNNING.add(request)
        const execution = new FetchExecution(engine, decision, call)
        return await run.inside(() => execution.runHandler(runs))
      }
      case 'reject':
        // The claim is given up after it.
        if (decision.problem.code === 'store_unavailable') waitFor(platform, () => engine.idle())
        return createReplacementResponse(engine, call, decision, decision.extraHeaders)
      case 'replay':
        return createReplacementResponse(engine, call, decision, decision.extraHeaders)
    }
  } finally {
    RUNNING.delete(request)
    over()
  }
}

function doNothing(): void {}

const RUNNING = new WeakSet<Request>()
