import { describe, expect, test } from 'vitest'
import { gate } from '../../support/gate.js'
import { FRAMEWORKS } from './frameworks/index.js'
import { REPLY_STYLES } from './replies.js'
import { essenceOf } from './same-reply.js'
import { serve } from './serve.js'

const TWINS = 20

describe.each(FRAMEWORKS)('$name', (framework) => {
  test.each(REPLY_STYLES)('$name: the first answer is the handler’s own, and a retry replays it', async ({ reply }) => {
    const unprotected = await serve(framework, reply, { isProtected: false })
    const serving = await serve(framework, reply)

    const own = await unprotected.send()
    const first = await serving.send()
    const replay = await serving.send()

    expect(essenceOf(first)).toEqual(essenceOf(own))
    expect(essenceOf(replay)).toEqual(essenceOf(first))
    expect(first.lines('Idempotent-Replayed')).toEqual([])
    expect(replay.lines('Idempotent-Replayed')).toEqual(['true'])
    expect(serving.runs()).toBe(1)
  })

  test('cookies reach the first client line by line, and no other; `keepHeader` keeps them', async () => {
    const cookies = ['a=1; Path=/', 'b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT']
    const reply = () => ({ text: 'paid', headers: cookies.map((cookie) => ['Set-Cookie', cookie] as const) })
    const serving = await serve(framework, reply)
    expect((await serving.send()).lines('Set-Cookie')).toEqual(cookies)
    expect((await serving.send()).lines('Set-Cookie')).toEqual([])

    const keeping = await serve(framework, reply, { options: { keepHeader: () => true } })
    await keeping.send()
    expect((await keeping.send()).lines('Set-Cookie')).toEqual(cookies)
  })

  test('a handler gets its body as it was sent, and the context of its run', async () => {
    const seen: unknown[] = []
    const serving = await serve(framework, async ({ json, bytes, idempotency }) => {
      const body = idempotency?.key === 'json' ? await json() : [...(await bytes())]
      seen.push([body, idempotency?.key, idempotency?.scope, idempotency?.attempt, idempotency?.previousOutcome])
      return {}
    })
    const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
    await serving.send({ key: 'json', json: { amount: 100, to: 'Zoë' } })
    await serving.send({ key: 'bytes', bytes: all, headers: { 'Content-Type': 'application/octet-stream' } })
    expect(seen).toEqual([
      [{ amount: 100, to: 'Zoë' }, 'json', 'acme', 1, 'none'],
      [[...all], 'bytes', 'acme', 1, 'none'],
    ])
  })

  test('without a key, with another method, or where `skip` says so, each request runs', async () => {
    const contexts: unknown[] = []
    const serving = await serve(
      framework,
      async ({ idempotency }) => {
        contexts.push(idempotency)
        return { text: 'run' }
      },
      { options: { skip: (headerOf) => headerOf('x-skip') === 'yes' } },
    )
    for (const sent of [{ key: null }, { method: 'GET' }, { headers: { 'X-Skip': 'yes' } }]) {
      expect((await serving.send(sent)).body.toString()).toBe('run')
      expect((await serving.send(sent)).lines('Idempotent-Replayed')).toEqual([])
    }
    expect(serving.runs()).toBe(6)
    expect(new Set(contexts)).toEqual(new Set([undefined]))
  })

  test(`${TWINS} identical requests at once: one runs, the others are told that it is in flight`, async () => {
    const end = gate()
    const serving = await serve(framework, async () => {
      await end.opened
      return { text: 'paid' }
    })
    let refused = 0
    const twins = Array.from({ length: TWINS }, async () => {
      const reply = await serving.send()
      if (reply.status === 409) refused++
      if (refused === TWINS - 1) end.open()
      return reply
    })
    const replies = await Promise.all(twins)
    expect(serving.runs()).toBe(1)
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const refusal of replies.filter(({ status }) => status === 409)) {
      expect(refusal.json()).toMatchObject({ code: 'in_flight' })
      expect(refusal.header('Retry-After')).toMatch(/^[1-8]$/)
      expect(refusal.header('X-Should-Retry')).toBe('true')
    }
  })

  test('a duplicate that waits gets the owner’s answer', async () => {
    const end = gate()
    const started = gate()
    const handler = async () => {
      started.open()
      await end.opened
      return { text: 'paid' }
    }
    const serving = await serve(framework, handler, { options: { inFlightWaitMs: 60_000 } })
    const first = serving.send()
    await started.opened
    const second = serving.send()
    end.open()
    expect((await first).body.toString()).toBe('paid')
    expect((await second).header('Idempotent-Replayed')).toBe('true')
  })

  test('a handler goes on when its client leaves, and a retry replays its answer', async () => {
    const end = gate()
    const started = gate()
    const serving = await serve(framework, async ({ idempotency }) => {
      started.open()
      await end.opened
      return { json: { aborted: idempotency?.signal.aborted } }
    })
    const client = serving.open()
    await started.opened
    client.socket.destroy()
    await client.closed
    expect((await serving.send()).json()).toMatchObject({ code: 'in_flight' })
    end.open()
    await serving.once.idle()
    const replay = await serving.send()
    expect(replay.json()).toEqual({ aborted: false })
    expect(replay.header('Idempotent-Replayed')).toBe('true')
    expect(serving.runs()).toBe(1)
  })
})
