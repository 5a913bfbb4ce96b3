import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

const LARGE = 'x'.repeat(300_000)

/** Responses that wait for their turn, behind a stream that is open. */
const BEHIND: Readonly<Record<string, (res: ServerResponse) => unknown>> = {
  'a held answer': (res) => res.end('paid'),
  'a held answer in pieces': (res) => {
    res.write('pa')
    setImmediate(() => res.end('id'))
  },
  'a stream': (res) => {
    res.flushHeaders()
    res.write('pa')
    res.end('id')
  },
  'a stream of too much': async (res) => {
    if (!res.write(LARGE)) await once(res, 'drain')
    res.end('paid')
  },
}
const NAMES = Object.keys(BEHIND)
const bodyOf = (name: string) => (name === 'a stream of too much' ? `${LARGE}paid` : 'paid')

describe.each(BINDINGS)('$name', (binding) => {
  test.each(NAMES)('%s behind a stream on its connection is stored at once, and sent in its turn', async (name) => {
    const streaming = gate()
    const handler: Step = async (req, res) => {
      if (req.headers['idempotency-key'] !== 'stream') return void BEHIND[name]?.(res)
      res.setHeader('Content-Type', 'text/event-stream')
      res.write('data: 1\n\n')
      await streaming.opened
      res.end('data: 2\n\n')
    }
    const { port, seen, store, once } = await serve(binding, handler, { options: { maxAnswerBytes: 1_000 } })
    const client = connectTo(port)
    client.send({ key: 'stream' })
    client.send({ key: 'behind' })
    // A stream that waits is read no further than its buffer: it ends in its turn.
    if (name !== 'a stream of too much') {
      await seen('completed')
      expect(await store.inspect?.('acme:behind')).toMatchObject({ state: 'completed' })
    }
    await client.firstByte
    const meanwhile = await request(port, { key: 'behind' })
    client.send({ key: 'behind' })
    expect(client.received().toString().split('HTTP/1.1')).toHaveLength(2)
    streaming.open()

    expect((await client.reply()).body.toString()).toBe('data: 1\n\ndata: 2\n\n')
    const second = await client.reply()
    expect(second.body.toString()).toBe(bodyOf(name))
    expect(second.header('Idempotent-Replayed')).toBeUndefined()
    const third = await client.reply()
    if (name.startsWith('a held')) {
      for (const replay of [third, meanwhile]) {
        expect([replay.status, replay.body.toString(), replay.header('Idempotent-Replayed')]).toEqual([
          200,
          'paid',
          'true',
        ])
      }
    } else expect([third.status, meanwhile.status]).toEqual([409, 409])
    client.socket.destroy()
    await once.idle()
  })
})
