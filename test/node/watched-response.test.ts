import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// Loggers such as morgan watch a response with on-finished, which keeps one list of watchers for each response. Where one
// was mounted before the middleware, its list heard the client leave, and with it `sendFile`, which is on the same list:
// the file was closed, the handler never ended, and its key stayed claimed until `maxRunMs` was over.

const FILE = fileURLToPath(new URL('../../package.json', import.meta.url))
const require = createRequire(import.meta.url)
const onFinished = createRequire(require.resolve('express'))('on-finished')

describe.each(BINDINGS.filter(({ isExpress }) => isExpress))('$name', (binding) => {
  test('a client that leaves during sendFile does not end it, whoever watches the response', async () => {
    let watched = 0
    const watch: Step = (_req, res, next) => {
      onFinished(res, () => watched++)
      next()
    }
    let clientSocket: Socket | undefined
    const handler: Step = (_req, res) => {
      res.once('pipe', () => clientSocket?.destroy())
      res.sendFile(FILE)
    }
    const serving = await serve(binding, handler, { before: [watch], behind: [watch] })
    serving.server.once('connection', (socket) => {
      clientSocket = socket
    })
    const client = connectTo(serving.port)
    client.send({ key: 'k' })
    await client.closed

    await serving.seen('completed')
    expect((await request(serving.port, { key: 'k' })).body).toEqual(await readFile(FILE))
    await serving.once.idle()
    expect([serving.runs(), watched]).toEqual([1, 3])
  })
})
