import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// Whoever ends a server gracefully (stoppable and its like) counts the requests of each socket, by `req.socket` when one
// comes and when its response is out. A view was left in the socket's place: such a map grew with each request, and the
// server did not end.

describe.each(BINDINGS)('$name', (binding) => {
  async function watched(handler: Step, onSocket: (socket: Socket) => void = () => {}) {
    const seen: boolean[] = []
    const over = gate()
    const watch: Step = (req, res, next) => {
      const { socket } = req
      onSocket(socket)
      for (const event of ['finish', 'close']) res.on(event, () => seen.push(req.socket === socket))
      res.once('close', () => over.open())
      next()
    }
    const serving = await serve(binding, handler, { before: [watch] })
    return { ...serving, seen, over: over.opened }
  }

  test('a request has its own socket again when its response is out', async () => {
    const { port, seen, over } = await watched((_req, res) => void res.end('paid'))
    await request(port, { key: 'k' })
    await over
    expect(seen).toEqual([true, true])
  })

  test('and when its handler has destroyed the response', async () => {
    const { port, seen, over } = await watched((_req, res) => {
      res.write('half')
      res.destroy()
    })
    const client = connectTo(port)
    client.send({ key: 'k' })
    await over
    expect(seen).toEqual([true])
  })

  test('and when its client has left', async () => {
    let clientSocket: Socket | undefined
    const { port, seen, over, once } = await watched(
      (_req, res) => {
        res.write('half')
        clientSocket?.once('close', () => res.end())
        clientSocket?.destroy()
      },
      (socket) => {
        clientSocket = socket
      },
    )
    const client = connectTo(port)
    client.send({ key: 'k' })
    await over
    await once.idle()
    expect(seen).toEqual([true, true])
  })
})
