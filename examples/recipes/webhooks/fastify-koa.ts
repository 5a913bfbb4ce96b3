import type { FastifyPluginAsync } from 'fastify'
import type { Middleware } from 'koa'
import type { WebhookReceiver } from 'once-per-key/receiver'

/** For `app.register`: in this plugin Fastify reads no body, and leaves the response to the receiver. */
export function onFastify(path: string, receiver: WebhookReceiver): FastifyPluginAsync {
  return async (app) => {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (_request, _body, done) => done(null))
    app.post(path, (request, reply) => {
      reply.hijack() // Without it, Fastify acknowledges the event for an async handler before it was handled.
      receiver(request.raw, reply.raw)
    })
  }
}

/** Mount it at a path of its own, before body parsers. */
export function onKoa(receiver: WebhookReceiver): Middleware {
  return (ctx) => {
    ctx.respond = false // Otherwise Koa responds with 404.
    receiver(ctx.req, ctx.res)
  }
}
