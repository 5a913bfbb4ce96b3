import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { connectTo } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// A response that is pipelined behind another has no socket when its handler begins. When it got one, it was the client's own:
// what watches a response, as `sendFile` does, heard the client leave, closed its file, and the handler never ended. Its key
// stayed claimed, and `idle()` pending, until `maxRunMs` was over.

const require = createRequire(import.meta.url)
const onFinished = createRequire(require.resolve('express'))('on-finished')

describe.each(BINDINGS)('$name', (binding) => {
  test('a client that leaves after its pipelined response got the connection does not end the handler', async () => {
    const second = { began: gate(), released: gate() }
    const ended = gate()
    let watched = 0
    let watchedBeforeEnd = -1
    const handler: Step = async (req, res) => {
      if (req.headers['idempotency-key'] === 'first') {
        await second.began.opened
        return void res.end('1')
      }
      onFinished(res, () => {
        watched++
        ended.open()
      })
      second.began.open()
      await second.released.opened
      watchedBeforeEnd = watched
      res.end('2')
    }
    const serving = await serve(binding, handler)
    const left = gate()
    serving.server.once('connection', (socket) => socket.once('close', () => left.open()))
    const client = connectTo(serving.port)
    client.send({ key: 'first' })
    client.send({ key: 'second' })
    await client.reply()
    client.socket.destroy()
    await left.opened
    second.released.open()

    await serving.once.idle()
    await ended.opened
    expect(watchedBeforeEnd).toBe(0)
    expect(watched).toBe(1)
  })
})
