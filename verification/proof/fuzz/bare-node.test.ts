import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Binding, type Step } from '../../../test/support/bindings.js'
import { gate } from '../../../test/support/gate.js'
import { connectTo } from '../../../test/support/raw-client.js'
import { serve } from '../../../test/support/serve.js'
import { BREAKING_OFF, findKindsLeftOpen, SITUATION } from './bare-node.js'
import { answer } from './handlers.js'
import type { KindName } from './mounts.js'

const leftOpen = await findKindsLeftOpen()

/** Whether the server closes the connection of a response that its handler breaks off before its turn. */
async function isClosed(binding: Binding, kind: KindName, key?: string): Promise<boolean> {
  const [brokenOff, first] = [gate(), gate()]
  const handler: Step = async (req, res) => {
    if (req.url === '/first') return first.opened.then(() => res.end())
    await answer(kind, req, res, () => {}, SITUATION)
    brokenOff.open()
  }
  const { port, server, once } = await serve(binding, handler)
  let socket: Socket | undefined
  server.once('connection', (opened) => {
    socket = opened
  })
  const client = connectTo(port)
  client.send({ path: '/first' })
  client.send({ path: '/second', key })
  await brokenOff.opened
  await once.idle()
  first.open()
  await client.reply().catch(() => {})
  await turn()
  client.socket.resetAndDestroy()
  return socket?.destroyed === true
}

describe.each(BINDINGS)('$name', (binding) => {
  test.each(BREAKING_OFF)(
    'a pipelined response without a key that is broken off (%s) ends as on a server without the middleware',
    async (kind) => {
      expect(await isClosed(binding, kind)).toBe(!leftOpen.has(kind))
    },
  )

  test.each(BREAKING_OFF)(
    'a pipelined response with a key that is broken off (%s) closes its connection, on each Node',
    async (kind) => {
      expect(await isClosed(binding, kind, 'k')).toBe(true)
    },
  )
})
