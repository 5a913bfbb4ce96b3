import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Answer, type IdempotencyContext, type MaybePromise, whenever } from '../core/index.js'
import type { Decision, RequestEngine } from '../http/index.js'
import { assertNotBuffered, bufferResponse, NodeFacts, responseBegunError } from '../node/hold.js'
import { FastifyAnswer } from './fastify-answer.js'
import { restoreContentType, sendEngineAnswer, unmarkStoredReply } from './reply-head.js'

/** What the entry of Fastify declares for all requests; the binding of Nest does not. */
type Protected = FastifyRequest & { idempotency: IdempotencyContext | undefined }

export interface SentAnswer {
  readonly answer: Answer
  readonly isReplay: boolean
}

/** The answers of requests whose handlers run, in the context of an application. Made before its routes, whose hooks it adds. */
export class ProtectedAnswers {
  readonly #answers = new WeakMap<FastifyRequest, FastifyAnswer>()

  constructor(app: FastifyInstance) {
    app.decorateRequest('idempotency', undefined)
    // It runs before the error handler, which may answer with any status.
    app.addHook('onError', (request, reply, error, done) => {
      unmarkStoredReply(reply)
      this.onError(request, error)
      done()
    })
    app.addHook('onSend', (request, reply, payload, done) => {
      const answer = this.#answers.get(request)
      if (answer === undefined) done(null, restoreContentType(reply, payload))
      else answer.onSend(payload, done)
    })
  }

  has(request: FastifyRequest): boolean {
    return this.#answers.has(request)
  }

  /** The handler is called, perhaps again after it has thrown. */
  onHandlerCalled(request: FastifyRequest): void {
    this.#answers.get(request)?.onHandlerCalled()
  }

  onError(request: FastifyRequest, error: unknown): void {
    this.#answers.get(request)?.onError(error)
  }

  /**
   * The replay or the refusal that was sent in place of the handler's answer; `null`: the handler must run. At once, if store and
   * options are synchronous.
   *
   * @throws IdempotencyError (or rejects with it) for misuse: the handler must not run, and nothing is stored.
   */
  claim(
    engine: RequestEngine<FastifyRequest>,
    given: FastifyRequest,
    reply: FastifyReply,
  ): MaybePromise<SentAnswer | null> {
    const request = given as Protected
    assertNotBuffered(reply.raw)
    if (reply.raw.headersSent) throw responseBegunError()
    const facts = new NodeFacts(request.raw, request, request.originalUrl, request.body)
    return whenever(engine.decide(facts), (decision) => this.#carryOut(decision, engine, request, reply))
  }

  #carryOut(
    decision: Decision,
    engine: RequestEngine<FastifyRequest>,
    request: Protected,
    reply: FastifyReply,
  ): MaybePromise<SentAnswer | null> {
    switch (decision.action) {
      case 'bypass':
        return null
      case 'execute': {
        const { run, extraHeaders = [] } = decision
        const onError = (error: unknown) => {
          reply.log.error({ err: error }, 'a stored answer could not be sent')
          if (!reply.raw.writableEnded) reply.raw.destroy() // Fastify has sent it, and does not send it again.
        }
        const held = bufferResponse(engine, run, extraHeaders, { req: request.raw, res: reply.raw, request, onError })
        return whenever(held, (response) => {
          if (response === null) throw responseBegunError() // Fastify ignores it, since the reply was sent.
          request.idempotency = run.context
          this.#answers.set(request, new FastifyAnswer(reply, run, response))
          return null
        })
      }
      case 'replay':
      case 'reject': {
        if (reply.raw.headersSent) throw responseBegunError()
        const answer = engine.answerFor(decision, request)
        sendEngineAnswer(reply, answer, decision.extraHeaders)
        return { answer, isReplay: decision.action === 'replay' }
      }
    }
  }
}
