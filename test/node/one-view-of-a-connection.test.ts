import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { serve } from '../support/serve.js'

// Frameworks know a connection by its socket, and add one listener for all of its requests. Each request was shown another view:
// its listener stayed until the connection closed, and with it the request.

describe.each(BINDINGS)('$name', (binding) => {
  async function requests(step: Step): Promise<Socket> {
    const { port, server } = await serve(binding, step)
    const connected = once(server, 'connection') as Promise<[Socket]>
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (const key of ['a', 'b', 'c']) {
      const headers = { 'Idempotency-Key': key, 'Content-Length': 0 }
      const sent = request({ port, agent, path: '/payouts', method: 'POST', headers }).end()
      const [response] = await once(sent, 'response')
      await once(response.resume(), 'end')
    }
    const [socket] = await connected
    agent.destroy()
    return socket
  }

  test.each(['req', 'res'] as const)('%s.socket is the same for each request of a connection', async (of) => {
    const seen = new Set<Socket>()
    const heard: string[] = []
    const socket = await requests((req, res) => {
      const shown = (of === 'req' ? req.socket : res.socket) as Socket
      if (!seen.has(shown)) shown.once('close', () => heard.push('closed'))
      seen.add(shown)
      res.end('paid')
    })
    if (!socket.closed) await once(socket, 'close')
    expect([seen.size, heard]).toEqual([1, ['closed']])
  })
})
