import { describe, expect, test } from 'vitest'
import { BINDINGS, BINDINGS_AND_STACKS } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

describe.each(BINDINGS_AND_STACKS)('$name', ({ binding, stack }) => {
  test('requests that are sent ahead on one connection are answered in their order', async () => {
    const slow = gate()
    const serving = await serve(
      binding,
      async (req, res) => {
        if (req.url === '/slow') await slow.opened
        res.write(req.url)
        res.end('!')
        if (req.url === '/fast') slow.open()
      },
      { stack },
    )
    await request(serving.port, { path: '/known', key: 'known' })

    const connection = connectTo(serving.port)
    connection.send({ path: '/slow', key: 'a' })
    connection.send({ path: '/known', key: 'known' }) // a replay
    connection.send({ path: '/other', key: 'known' }) // a refusal
    connection.send({ path: '/fast', key: 'b' })
    connection.send({ path: '/plain' }) // without a key
    const replies = []
    for (let i = 0; i < 5; i++) replies.push(await connection.reply())
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 409, 200, 200])
    expect(replies.map(({ body }) => body.toString()).filter((body) => body.startsWith('/'))).toEqual([
      '/slow!',
      '/known!',
      '/fast!',
      '/plain!',
    ])
    expect(connection.received()).toHaveLength(0)
  })

  test('a connection serves on after an answer, a replay, a refusal, a failure and a stream', async () => {
    const serving = await serve(
      binding,
      (req, res, next) => {
        if (req.url === '/fails') return next(new Error('no money'))
        if (req.url === '/streams') res.flushHeaders()
        res.end(req.url)
      },
      { stack },
    )
    const connection = connectTo(serving.port)
    const statuses: number[] = []
    for (const [path, key] of [
      ['/pays', 'a'],
      ['/pays', 'a'],
      ['/other', 'a'],
      ['/fails', 'b'],
      ['/fails', 'b'],
      ['/streams', 'c'],
      ['/streams', 'c'],
      ['/pays', 'd'],
    ] as const) {
      connection.send({ path, key, headers: { 'Accept-Encoding': 'gzip' } })
      statuses.push((await connection.reply()).status)
    }
    expect(statuses).toEqual([200, 200, 409, 500, 500, 200, 409, 200])
    expect(connection.socket.destroyed).toBe(false)
  })
})

describe.each(BINDINGS)('$name', (binding) => {
  test('a request that expects 100-continue is told to go on, and is replayed like any other', async () => {
    const serving = await serve(binding, (req, res) => res.end(`paid ${req.body.amount}`))
    for (let i = 0; i < 2; i++) {
      const connection = connectTo(serving.port)
      connection.socket.write(
        'POST / HTTP/1.1\r\nHost: test\r\nIdempotency-Key: k\r\nExpect: 100-continue\r\nContent-Length: 12\r\n\r\n',
      )
      await connection.firstByte
      expect(connection.received().toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n')
      connection.socket.write('{"amount":1}')
      expect((await connection.reply()).body.toString()).toBe('paid 1')
      connection.socket.destroy()
    }
    expect(serving.runs()).toBe(1)
  })

  test('early hints pass through while the response is held', async () => {
    const hinted = gate()
    const serving = await serve(binding, async (_req, res) => {
      res.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' })
      await hinted.opened
      res.end('paid')
    })
    const connection = connectTo(serving.port)
    connection.send({ key: 'k' })
    await connection.firstByte
    hinted.open()
    const reply = await connection.reply()
    expect(reply.interim).toEqual([103])
    expect(reply.body.toString()).toBe('paid')
    expect((await request(serving.port, { key: 'k' })).interim).toEqual([])
  })

  test('a client that speaks HTTP/1.0 gets the answer, and a replay', async () => {
    const serving = await serve(binding, (_req, res) => {
      res.write('pa')
      res.end('id')
    })
    for (let i = 0; i < 2; i++) {
      const reply = await request(serving.port, { key: 'k', version: '1.0' })
      expect(reply.body.toString()).toBe('paid')
      expect(reply.header('Connection')).toBe('close')
    }
    expect(serving.runs()).toBe(1)
  })

  test('a handler that fails on a connection where others wait closes it, and is released', async () => {
    const first = gate()
    const serving = await serve(binding, async (req, res, next) => {
      if (req.url === '/first') {
        await first.opened
        return res.end('first')
      }
      res.write('half')
      next(new Error('no money'))
      setImmediate(() => first.open())
    })
    const connection = connectTo(serving.port)
    connection.send({ path: '/first', key: 'a' })
    connection.send({ path: '/second', key: 'b' })
    await connection.closed
    await serving.once.idle()
    expect(serving.events).toContainEqual(expect.objectContaining({ type: 'failed', key: 'b' }))
  })
})
