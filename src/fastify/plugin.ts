import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import { type IdempotencyContext, mountedTwice } from '../core/index.js'
import { controlsOf, createRequestEngine, type IdempotencyOptions, type Operator } from '../http/index.js'
import { NodeFacts } from '../node/facts.js'
import { hold } from '../node/hold.js'
import { FastifyAnswer } from './fastify-answer.js'
import { sendStored, sentAsStored } from './stored-answer.js'

/** For shutdown and operators: `app.idempotency`. */
export interface IdempotencyControls extends Operator {
  /**
   * Resolves when no run is active and no completion is pending. Call it after `app.close()` and before closing the store's
   * client.
   */
  idle(): Promise<void>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The context of a protected request's run; `undefined` if the request had no key. */
    idempotency: IdempotencyContext | undefined
  }
  interface FastifyInstance {
    idempotency: IdempotencyControls
  }
}

export type IdempotencyPlugin = FastifyPluginCallback<IdempotencyOptions<FastifyRequest>>

/**
 * Plugin for Fastify 4 and 5: a request that is retried with its `Idempotency-Key` gets the answer of the first one, and the handler
 * does not run again. It protects the routes of the context that registers it, and of its child contexts. Authenticate in
 * `onRequest` or `preValidation`: the plugin claims in `preHandler`. Register it before plugins that change answers in `onSend`,
 * for example compression: what they do is not stored, and is done to replays as well.
 *
 * Misuse by the application goes to the error handler as an IdempotencyError; the handler does not run, and nothing is stored.
 *
 * @example
 * await app.register(idempotency, { store: new MemoryStore(), scope: (request) => request.merchantId })
 * app.post('/payouts', async (request, reply) => reply.code(201).send(await pay(request.body, request.idempotency)))
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake, when the plugin loads.
 */
export const idempotency: IdempotencyPlugin = (app, options, loaded) => {
  protect(app, options)
  loaded()
}

// Fastify reads these: the plugin's hooks apply to the context that registers it. See Fastify's "Plugins Guide".
Object.assign(idempotency, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'once-per-key',
  [Symbol.for('plugin-meta')]: { name: 'once-per-key', fastify: '^4.29.0 || ^5.0.0' },
})

function protect(app: FastifyInstance, options: IdempotencyOptions<FastifyRequest>): void {
  const engine = createRequestEngine<FastifyRequest>(options)
  /** The answers of requests whose handler runs. */
  const answers = new WeakMap<FastifyRequest, FastifyAnswer>()

  app.decorateRequest('idempotency', undefined)
  app.decorate('idempotency', controlsOf(engine))

  app.addHook('preHandler', async (request, reply) => {
    if (answers.has(request)) return // `reply.callNotFound()` in the handler runs the hooks again.
    if (request.idempotency !== undefined) throw mountedTwice()
    const decision = await engine.decide(new NodeFacts(request.raw, request, request.originalUrl, request.body))
    switch (decision.action) {
      case 'bypass':
        return
      case 'execute': {
        const { run, extraHeaders = [] } = decision
        const onError = (error: unknown) => {
          reply.log.error({ err: error }, 'a stored answer could not be sent')
          if (!reply.raw.writableEnded) reply.raw.destroy() // Fastify has sent it, and does not send it again.
        }
        const response = await hold(engine, run, extraHeaders, { req: request.raw, res: reply.raw, request, onError })
        request.idempotency = run.context
        answers.set(request, new FastifyAnswer(reply, run, response))
        return
      }
      case 'replay':
      case 'reject':
        return sendStored(reply, engine.answerFor(decision, request), decision.extraHeaders)
    }
  })
  // It runs before the error handler, which may answer with any status.
  app.addHook('onError', (request, _reply, error, done) => {
    answers.get(request)?.failed(error)
    done()
  })
  app.addHook('onSend', (request, reply: FastifyReply, payload, done) => {
    const answer = answers.get(request)
    if (answer === undefined) done(null, sentAsStored(reply, payload))
    else answer.send(payload, done)
  })
}
