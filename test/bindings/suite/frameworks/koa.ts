import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import Koa, { type Context } from 'koa'
import bodyParser from 'koa-bodyparser'
import { idempotency } from 'once-per-key/koa'
import { bindOptions } from 'once-per-key/testing'
import { listen } from '../../../support/bindings.js'
import type { Framework, Reply } from '../framework.js'

/** Of `co-body`: its types do not know all of its options. */
const PARSER = { strict: false, onProtoPoisoning: 'ignore' }

/** Koa, with an error handler where the application has one. */
export const onKoa: Framework = {
  name: 'Koa',
  async start(app) {
    const once = idempotency(bindOptions(app, (ctx: Context, name) => ctx.get(name)))
    const koa = new Koa()
    koa.silent = true
    koa.use(bodyParser(PARSER))
    koa.use(async (ctx, next) => {
      if (ctx.is('application/octet-stream')) ctx.request.body = await buffer(ctx.req)
      await next()
    })
    const { onError } = app
    if (onError !== undefined) {
      koa.use(async (ctx, next) => {
        try {
          await next()
        } catch (error) {
          answer(ctx, onError(error))
        }
      })
    }
    if (app.isProtected) koa.use(once)
    koa.use(async (ctx) => {
      const { idempotency, request } = ctx
      const { body } = request
      answer(ctx, await app.handler({ idempotency, json: () => body, bytes: () => body as Uint8Array }))
    })
    return { ...(await listen(koa.callback())), once }
  },
}

function answer(ctx: Context, { status, headers = [], json, text, bytes, stream, redirect }: Reply): void {
  for (const [name, value] of headers) ctx.append(name, value)
  if (redirect !== undefined) ctx.redirect(redirect)
  ctx.status = status ?? (redirect === undefined ? 200 : 302)
  if (json !== undefined) ctx.body = json
  else if (stream !== undefined) ctx.body = Readable.from(stream, { objectMode: false })
  else if (redirect === undefined && ctx.status !== 204)
    ctx.body = bytes === undefined ? (text ?? '') : Buffer.from(bytes)
}
