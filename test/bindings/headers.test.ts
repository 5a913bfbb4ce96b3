import compression from 'compression'
import session from 'express-session'
import { bodyField } from 'once-per-key'
import { describe, expect, test } from 'vitest'
import { BINDINGS, BINDINGS_AND_STACKS, FULL, type Stack, type Step } from '../support/bindings.js'
import { connectTo, decoded, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'
import { essenceOf } from './same-answer.js'

/** What applications put in front: headers of this one request. Mounted after the stack, since helmet sets some too. */
function withFreshHeaders(stack: Stack): Stack {
  let count = 0
  const step: Step = (req, res, next) => {
    res.setHeader('X-Request-Id', `request ${++count}`)
    res.setHeader('Access-Control-Allow-Origin', req.headers.origin ?? '*')
    res.setHeader('Content-Security-Policy', `script-src 'nonce-${count}'`)
    res.setHeader('Vary', ['Origin'])
    res.setHeader('X-Sequence', count)
    res.setHeader('X-Trace', ['one', `of ${count}`])
    next()
  }
  return { ...stack, steps: () => [...stack.steps(), step] }
}

describe.each(BINDINGS_AND_STACKS)('$name', ({ binding, stack }) => {
  test('headers of earlier middleware are fresh on a replay, and come once', async () => {
    const serving = await serve(
      binding,
      (_req, res) => {
        res.setHeader('X-Receipt', '17')
        res.appendHeader('Vary', 'Accept')
        res.end('paid')
      },
      { stack: withFreshHeaders(stack) },
    )
    const connection = connectTo(serving.port)
    for (const [i, origin] of ['https://one.example', 'https://two.example', 'https://three.example'].entries()) {
      connection.send({ key: 'k', headers: { Origin: origin } })
      const reply = await connection.reply()
      expect(reply.header('X-Receipt')).toBe('17')
      expect(reply.header('X-Request-Id')).toBe(`request ${i + 1}`)
      expect(reply.header('X-Sequence')).toBe(`${i + 1}`)
      expect(reply.lines('X-Trace')).toEqual(['one', `of ${i + 1}`])
      expect(reply.header('Access-Control-Allow-Origin')).toBe(origin)
      expect(reply.header('Content-Security-Policy')).toBe(`script-src 'nonce-${i + 1}'`)
      expect(reply.lines('Vary').slice(0, 2)).toEqual(
        // compression puts the lines into one.
        stack === FULL ? ['Origin, Accept, Accept-Encoding'] : ['Origin', 'Accept'],
      )
      expect(reply.lines('Idempotent-Replayed')).toEqual(i === 0 ? [] : ['true'])
    }
  })

  test('a header of earlier middleware that the handler changed is the handler’s', async () => {
    const serving = await serve(
      binding,
      (_req, res) => {
        res.setHeader('x-request-id', 'mine')
        res.end('paid')
      },
      { stack: withFreshHeaders(stack) },
    )
    for (let i = 0; i < 2; i++) expect((await request(serving.port, { key: 'k' })).header('X-Request-Id')).toBe('mine')
  })

  test('Set-Cookie, Date and connection headers reach the first client alone', async () => {
    const serving = await serve(
      binding,
      (_req, res) => {
        res.appendHeader('Set-Cookie', 'receipt=17')
        res.setHeader('Date', 'Thu, 01 Jan 1970 00:00:00 GMT')
        res.setHeader('Connection', 'close')
        res.setHeader('Proxy-Authenticate', 'Basic')
        res.end('paid')
      },
      { stack },
    )
    const first = await request(serving.port, { key: 'k' })
    expect(first.lines('Set-Cookie')).toContain('receipt=17')
    expect(first.header('Date')).toBe('Thu, 01 Jan 1970 00:00:00 GMT')
    expect(first.header('Connection')).toBe('close')
    expect(first.lines('Proxy-Authenticate')).toEqual(['Basic'])
    const replay = await request(serving.port, { key: 'k' })
    expect(replay.lines('Set-Cookie')).not.toContain('receipt=17')
    expect(replay.header('Date')).not.toBe('Thu, 01 Jan 1970 00:00:00 GMT')
    expect(replay.header('Connection')).toBe('keep-alive')
    expect(replay.lines('Proxy-Authenticate')).toEqual([])
  })

  test('a session of earlier middleware gives each client its own cookie', async () => {
    const serving = await serve(binding, (_req, res) => res.end('paid'), { stack })
    const cookies = []
    for (let i = 0; i < 2; i++) cookies.push((await request(serving.port, { key: 'k' })).lines('Set-Cookie'))
    const own = stack === FULL ? 1 : 0
    expect(cookies.map((lines) => lines.length)).toEqual([own, own])
    expect(new Set(cookies.flat()).size).toBe(2 * own)
  })

  test('deprecation headers stand on the answer, its replay and a refusal, beside the handler’s own links', async () => {
    const legacyKey = bodyField('idempotencyKey', {
      deprecatedSince: new Date('2026-01-01T00:00:00Z'),
      sunset: new Date('2027-01-01T00:00:00Z'),
      link: 'https://api.example/deprecations',
    })
    const own = '</receipts/17>; rel="self"'
    const deprecation = '<https://api.example/deprecations>; rel="deprecation"'
    const serving = await serve(
      binding,
      (req, res) => {
        res.setHeader('Link', own)
        if (req.url === '/streams') res.flushHeaders()
        res.end('paid')
      },
      { stack, options: { legacyKey } },
    )
    const byField = (path: string, amount: number) =>
      request(serving.port, { path, body: { idempotencyKey: 'k', amount } })
    const first = await byField('/', 1)
    const replay = await byField('/', 1)
    const refusal = await byField('/', 2)
    for (const reply of [first, replay, refusal]) {
      expect(reply.header('Deprecation')).toBe('@1767225600')
      expect(reply.header('Sunset')).toBe('Fri, 01 Jan 2027 00:00:00 GMT')
    }
    expect(first.lines('Link')).toEqual([own, deprecation])
    expect(replay.lines('Link')).toEqual([own, deprecation])
    expect(refusal.lines('Link')).toEqual([deprecation])

    // A client that has moved to the header is not told, and gets the same answer.
    const moved = await request(serving.port, { key: 'k', body: { amount: 1 } })
    expect(moved.header('Idempotent-Replayed')).toBe('true')
    expect(moved.lines('Deprecation')).toEqual([])
    expect(moved.lines('Sunset')).toEqual([])
    expect(moved.lines('Link')).toEqual([own])

    const streamed = await request(serving.port, { path: '/streams', body: { idempotencyKey: 's' } })
    expect(streamed.lines('Link')).toEqual([own, deprecation])
    expect(streamed.header('Deprecation')).toBe('@1767225600')
  })

  test('keepHeader decides for each header the handler set, but never for those of a connection', async () => {
    const asked: string[] = []
    const keepHeader = (name: string, byDefault: boolean) => {
      asked.push(`${name} ${byDefault}`)
      return name === 'set-cookie'
    }
    const serving = await serve(
      binding,
      (_req, res) => {
        res.setHeader('X-Receipt', '17')
        res.appendHeader('Set-Cookie', 'receipt=17')
        res.setHeader('Upgrade', 'h2c')
        res.setHeader('Content-Length', 4)
        res.end('paid')
      },
      { stack, options: { keepHeader } },
    )
    await request(serving.port, { key: 'k' })
    const replay = await request(serving.port, { key: 'k' })
    expect(replay.lines('X-Receipt')).toEqual([])
    expect(replay.lines('Set-Cookie')).toContain('receipt=17')
    expect(replay.lines('Upgrade')).toEqual([])
    expect(asked).toEqual(['x-receipt true', 'set-cookie false'])
  })
})

describe.each(BINDINGS)('$name', (binding) => {
  test('hooks on the head that are mounted behind the middleware run once, and what they set is kept', async () => {
    let hooks = 0
    const hook: Step = (_req, res, next) => {
      const { writeHead } = res
      res.writeHead = function (...args: unknown[]) {
        hooks++
        this.setHeader('X-Hook', 'ran')
        return writeHead.apply(this, args)
      }
      next()
    }
    const serving = await serve(binding, (_req, res) => res.end('paid'), { behind: [hook] })
    for (let i = 0; i < 2; i++) expect((await request(serving.port, { key: 'k' })).header('X-Hook')).toBe('ran')
    expect(hooks).toBe(1)
  })

  test.each([
    { name: 'at once', handler: ((_req, res) => res.end('paid '.repeat(1_000))) satisfies Step },
    {
      name: 'in pieces',
      handler: ((_req, res) => {
        res.write('paid '.repeat(500))
        setImmediate(() => res.end('paid '.repeat(500)))
      }) satisfies Step,
    },
  ])('compression and express-session behind the middleware work, $name', async ({ handler }) => {
    const behind = [
      compression({ threshold: 0, filter: () => true }) as unknown as Step,
      session({ secret: 'a', resave: true, saveUninitialized: true }) as unknown as Step,
    ]
    const serving = await serve(binding, handler, { behind })
    const sent = { key: 'k', headers: { 'Accept-Encoding': 'gzip' } }
    const first = await request(serving.port, sent)
    const replay = await request(serving.port, sent)
    expect(first.header('Content-Encoding')).toBe('gzip')
    expect(decoded(first).toString()).toBe('paid '.repeat(1_000))
    expect(first.lines('Set-Cookie')).toHaveLength(1)
    expect(essenceOf(replay)).toEqual(essenceOf(first))
    expect(replay.body.equals(first.body)).toBe(true)
    expect(replay.lines('Set-Cookie')).toEqual([])
    expect(serving.runs()).toBe(1)
  })

  test('an event stream behind compression flows on, with the compression behind the middleware', async () => {
    const serving = await serve(
      binding,
      (_req, res) => {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' })
        let left = 2_000
        const go = (): void => {
          while (left-- > 0) if (!res.write(`data: ${left} ${Math.random()}\n\n`)) return void res.once('drain', go)
          res.end('data: end\n\n')
        }
        go()
      },
      { behind: [compression({ threshold: 0, filter: () => true }) as unknown as Step] },
    )
    const reply = await request(serving.port, { key: 'k', headers: { 'Accept-Encoding': 'gzip' } })
    expect(decoded(reply).toString().endsWith('data: 0 ')).toBe(false)
    expect(decoded(reply).toString().endsWith('data: end\n\n')).toBe(true)
  })

  test('an event stream whose client leaves ends through compression behind the middleware, which has closed by then', async () => {
    const serving = await serve(
      binding,
      (_req, res) => {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' })
        res.write('data: 1\n\n')
        res.flush()
        res.once('close', () => res.end())
      },
      { behind: [compression({ threshold: 0, filter: () => true }) as unknown as Step] },
    )
    const client = connectTo(serving.port)
    client.send({ key: 'k', headers: { 'Accept-Encoding': 'gzip' } })
    await client.firstByte
    client.socket.destroy()
    await serving.seen('completed')
    expect((await request(serving.port, { key: 'k' })).json()).toMatchObject({ code: 'answer_not_kept' })
  })
})
