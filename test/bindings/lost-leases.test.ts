import type { Answer, Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { BINDINGS_AND_STACKS, type Step } from '../support/bindings.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

const OTHERS: Answer = {
  status: 201,
  statusMessage: 'Paid By Another',
  headers: [['X-Receipt', 'another']],
  body: Buffer.from('paid by another'),
}

/** A store in which somebody else has taken the record over by the time that the handler ends. */
function takenOver(record: { readonly completed: boolean }): Store {
  const store: Store = new MemoryStore()
  return {
    effects: store.effects,
    begin: (key, claim) => store.begin(key, claim),
    renew: (key, own) => store.renew(key, own),
    async complete(_key, { fingerprint }) {
      if (record.completed)
        return { ok: false, record: { state: 'completed', fingerprint, attempt: 2, answer: OTHERS } }
      return {
        ok: false,
        record: { state: 'in-flight', fingerprint, attempt: 2, uncertain: true, leaseRemainingMs: 1_000 },
      }
    },
    release: (key, own) => store.release(key, own),
  }
}

const ENDS: readonly { readonly name: string; readonly handler: Step }[] = [
  {
    name: 'at once',
    handler(_req, res) {
      res.statusMessage = 'Paid By Me'
      res.setHeader('X-Receipt', 'mine')
      res.setHeader('X-Mine', 'secret')
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
  {
    name: 'with a stream',
    handler(_req, res) {
      res.setHeader('X-Mine', 'secret')
      res.flushHeaders()
      res.write('paid ')
      setImmediate(() => {
        res.write('by ')
        res.end('me')
      })
    },
  },
]

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
})
