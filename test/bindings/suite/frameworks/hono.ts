import { Hono } from 'hono'
import { idempotency } from 'once-per-key/hono'
import { bindOptions } from 'once-per-key/testing'
import { listen } from '../../../support/bindings.js'
import { fetchListener } from '../../../support/fetch-listener.js'
import type { Framework } from '../framework.js'
import { responseOf } from './fetch.js'

/** Hono, with an error handler where the application has one. */
export const onHono: Framework = {
  name: 'Hono',
  joinsHeaderLines: true,
  readsBodies: true,
  async start(app) {
    const once = idempotency(
      bindOptions(app, (c: { req: { header(name: string): string | undefined } }, name) => c.req.header(name)),
    )
    const hono = new Hono()
    if (app.isProtected) hono.use(once)
    hono.all('*', async (c) => {
      const bytes = async () => new Uint8Array(await c.req.arrayBuffer())
      return responseOf(await app.handler({ idempotency: c.get('idempotency'), json: () => c.req.json(), bytes }))
    })
    const { onError = () => ({ status: 500, text: 'Internal Server Error' }) } = app
    hono.onError((error) => responseOf(onError(error)))
    return { ...(await listen(fetchListener((request) => hono.fetch(request)))), once }
  },
}
