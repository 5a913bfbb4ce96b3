import { describe, expect, test } from 'vitest'
import { BINDINGS_AND_STACKS, type Step } from '../support/bindings.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'
import { takenOver } from '../support/taken-over.js'

const ENDS: readonly { readonly name: string; readonly handler: Step }[] = [
  {
    name: 'at once',
    handler(_req, res) {
      res.statusMessage = 'Paid By Me'
      res.setHeader('X-Receipt', 'mine')
      res.setHeader('X-Mine', 'secret')
      res.setHeader('Date', 'Thu, 01 Jan 1970 00:00:00 GMT')
      res.setHeader('Content-Length', 10)
      res.end('paid by me')
    },
  },
  {
    name: 'through writeHead',
    handler(_req, res) {
      res.writeHead(200, 'Paid By Me', { 'X-Mine': 'secret', 'Content-Type': 'text/mine' })
      res.end('paid by me')
    },
  },
]

/** Its head has left before anybody could know. */
const STREAM: Step = (_req, res) => {
  res.flushHeaders()
  res.write('paid ')
  setImmediate(() => {
    res.write('by ')
    res.end('me')
  })
}

describe.each(BINDINGS_AND_STACKS)('$name', ({ binding, stack }) => {
  test.each(ENDS)('a run that lost its lease and ends $name gives its client the answer that stands', async (end) => {
    const serving = await serve(binding, end.handler, { stack, options: { store: takenOver({ completed: true }) } })
    const reply = await request(serving.port, { key: 'k' })
    expect(reply.status).toBe(201)
    expect(reply.statusMessage).toBe('Paid By Another')
    expect(reply.body.toString()).toBe('paid by another')
    expect(reply.lines('X-Receipt')).toEqual(['another'])
    expect(reply.lines('X-Mine')).toEqual([])
    expect(reply.lines('Content-Type')).toEqual([])
    expect(Date.parse(reply.header('Date') ?? '')).toBeGreaterThan(0)
    expect(reply.header('Idempotent-Replayed')).toBe('true')
  })

  test.each(ENDS)(
    'a run that lost its lease and ends $name never sends a success that no record holds',
    async (end) => {
      const serving = await serve(binding, end.handler, { stack, options: { store: takenOver({ completed: false }) } })
      const connection = connectTo(serving.port)
      connection.send({ key: 'k' })
      const reply = await connection.reply()
      expect(reply.status).toBe(409)
      expect(reply.statusMessage).toBe('Conflict')
      expect(reply.json()).toMatchObject({ code: 'in_flight' })
      expect(reply.lines('X-Mine')).toEqual([])
      expect(reply.lines('X-Receipt')).toEqual([])
      connection.send({ path: '/next' }) // The connection is still good.
      expect((await connection.reply()).status).toBe(200)
      await serving.once.idle()
    },
  )

  test.each([{ completed: true }, { completed: false }])(
    'a stream of a run that lost its lease is cut before its end ($completed)',
    async (setting) => {
      const serving = await serve(binding, STREAM, { stack, options: { store: takenOver(setting) } })
      const connection = connectTo(serving.port)
      connection.send({ key: 'k' })
      await connection.closed
      const received = connection.received().toString('latin1')
      expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
      expect(received).not.toContain('0\r\n\r\n')
      await serving.once.idle()
    },
  )
})
