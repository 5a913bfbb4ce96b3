import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// A handler that forwards another service's answer, and ends its own when that service is cut off, has announced more bytes
// than it writes. Its client can tell. But the length was counted anew: half a JSON became a whole success, and was replayed.

const half: Step = (_req, res) => {
  res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '40' })
  res.write('{"id":"po_1","amount":')
  res.end()
}

describe.each(BINDINGS)('$name', (binding) => {
  test('an answer that is cut short reaches its client as such, and is not replayed', async () => {
    const { port, seen, events } = await serve(binding, half)
    const client = connectTo(port)
    client.send({ key: 'k' })
    await client.firstByte
    await seen('completed')
    expect(events).toContainEqual(expect.objectContaining({ type: 'completed', answerKept: false }))
    expect(client.received().toString('latin1')).toMatch(
      /content-length: 40\r\n[\s\S]*\r\n\r\n\{"id":"po_1","amount":$/i,
    )
    expect((await request(port, { key: 'k' })).json()).toMatchObject({ code: 'answer_not_kept' })
  })

  test('a length without a body, as after HEAD, is kept', async () => {
    const { port, events } = await serve(binding, (_req, res) => {
      res.setHeader('Content-Length', '40')
      res.end()
    })
    for (let i = 0; i < 2; i++) {
      const reply = await request(port, { method: 'HEAD', key: 'k' })
      expect([reply.status, reply.header('content-length')]).toEqual([200, '40'])
    }
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('trailers that nobody announced reach the first client', async () => {
    const { port } = await serve(binding, (_req, res) => {
      res.write('paid')
      res.addTrailers({ 'X-Checksum': '77' })
      res.end()
    })
    const reply = await request(port, { key: 'k' })
    expect([reply.body.toString(), reply.trailers]).toEqual(['paid', [['X-Checksum', '77']]])
  })
})
