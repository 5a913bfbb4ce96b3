// Each serves one handler, written in no framework's words: `handle(context, answer)`. `answer(status, id)` answers in those of the
// framework, and `work` and handler return what it returns.
const { createServer } = require('node:http')
const { newest, older } = require('./packages.cjs')

const once = (name) => newest(name === '' ? 'once-per-key' : `once-per-key/${name}`)

exports.BINDINGS = {
  'Express 5': onExpress(newest),
  'Express 4': onExpress(older),

  async Fastify(options, handle) {
    const app = newest('fastify').fastify()
    await app.register(once('fastify').idempotency, options)
    app.post('/payouts', async (request, reply) => {
      await handle(request.idempotency, (status, id) => void reply.code(status).send({ id }))
      return reply
    })
    await app.listen({ host: '127.0.0.1', port: 0 })
    return served(app.server, () => app.idempotency.idle())
  },

  async Koa(options, handle) {
    const Koa = newest('koa')
    const app = new Koa().on('error', () => {})
    const middleware = once('koa').idempotency(options)
    app.use(newest('koa-bodyparser')()).use(middleware)
    app.use(async (ctx) => {
      await handle(ctx.idempotency, (status, id) => {
        ctx.status = status
        ctx.body = { id }
      })
    })
    return served(await listening(createServer(app.callback())), () => middleware.idle())
  },

  async Hono(options, handle) {
    const { Hono } = newest('hono')
    const { getRequestListener } = newest('@hono/node-server')
    const { idempotency, reply } = once('hono')
    const middleware = idempotency(options)
    const app = new Hono()
    // A Response cannot be read in a transaction that must not wait.
    app.post('/payouts', middleware, async (c) => {
      const answer = (status, id, isSync) => (isSync ? reply(status, { id }) : c.json({ id }, status))
      return handle(c.get('idempotency'), answer)
    })
    app.onError((_error, c) => c.body(null, 500))
    return served(await listening(createServer(getRequestListener(app.fetch))), () => middleware.idle())
  },
}

function onExpress(load) {
  return async (options, handle) => {
    const express = load('express')
    const middleware = once('').idempotency(options)
    const app = express()
    app.post('/payouts', express.json(), middleware, (req, res, next) => {
      handle(req.idempotency, (status, id) => void res.status(status).json({ id })).catch(next)
    })
    app.use((_error, _req, res, _next) => res.sendStatus(500))
    return served(await listening(createServer(app)), () => middleware.idle())
  }
}

async function listening(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

function served(server, idle) {
  return {
    async post(key) {
      const response = await fetch(`http://127.0.0.1:${server.address().port}/payouts`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
        body: '{"amount":1}',
      })
      const [, id = ''] = /"id":"(.+?)"/.exec(await response.text()) ?? []
      const replayed = response.headers.has('idempotent-replayed') ? 'replayed' : ''
      return [response.status, id, replayed].filter(Boolean).join(' ')
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await idle()
    },
  }
}
