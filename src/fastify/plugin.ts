import type { FastifyInstance, FastifyPluginCallback, FastifyRequest } from 'fastify'
import { type IdempotencyContext, refuseMount } from '../core/index.js'
import { type Controls, createRequestEngine, type IdempotencyOptions, pickControls } from '../http/index.js'
import { ProtectedAnswers, type SentAnswer } from './protected-answers.js'

/** For shutdown and operators: `app.idempotency`. */
export interface IdempotencyControls extends Controls {}

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
 * Plugin for Fastify from 4.29 on: a request that is retried with its `Idempotency-Key` gets the answer of the first one, and the handler
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
  if (typeof app?.addHook !== 'function') return refuseMount(FOR, [app, options, loaded])
  try {
    protect(app, options)
  } catch (error) {
    return loaded(error as Error) // What a plugin throws ends the process: Fastify waits for this call alone.
  }
  loaded()
}

const FOR = '`idempotency` of once-per-key/fastify is a plugin: await app.register(idempotency, { store, scope })'

// Fastify reads these: the plugin's hooks apply to the context that registers it. See Fastify's "Plugins Guide".
Object.assign(idempotency, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'once-per-key',
  [Symbol.for('plugin-meta')]: { name: 'once-per-key', fastify: '>=4.29.0' },
})

function protect(app: FastifyInstance, options: IdempotencyOptions<FastifyRequest>): void {
  const engine = createRequestEngine<FastifyRequest>(options)
  const answers = new ProtectedAnswers(app)
  app.decorate('idempotency', pickControls(engine))
  // Not async: Fastify goes on when such a hook ends, also if the reply is not sent yet, because `onSend` waits or its client has left.
  app.addHook('preHandler', (request, reply, goOn) => {
    if (answers.has(request)) return goOn() // `reply.callNotFound()` in the handler runs the hooks again.
    const claimed = answers.claim(engine, request, reply)
    const next = (answered: SentAnswer | null) => answered === null && goOn()
    if (claimed instanceof Promise) claimed.then(next, goOn)
    else next(claimed)
  })
}
