import { describe, expect, test } from 'vitest'
import { BINDINGS, BINDINGS_AND_STACKS } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'
import { essenceOf } from './same-answer.js'

const TRIES = 50
const TWINS = 50

describe.each(BINDINGS_AND_STACKS)('$name', ({ binding, stack }) => {
  test(`a retry at the first byte of the answer is a replay, ${TRIES} times of ${TRIES}`, async () => {
    const serving = await serve(
      binding,
      (req, res) => {
        res.write(`paid ${req.headers['idempotency-key']}, `)
        setImmediate(() => res.end('thank you'))
      },
      { stack },
    )
    const retries = connectTo(serving.port)
    let replays = 0
    for (let i = 0; i < TRIES; i++) {
      const first = connectTo(serving.port)
      // In the callback that brings the byte: no turn of the loop lies between them.
      first.socket.once('data', () => retries.send({ key: `k${i}` }))
      first.send({ key: `k${i}` })
      const [answer, replay] = [await first.reply(), await retries.reply()]
      if (replay.header('Idempotent-Replayed') === 'true') replays++
      expect(essenceOf(replay)).toEqual(essenceOf(answer))
      first.socket.destroy()
    }
    expect(replays).toBe(TRIES)
    expect(serving.runs()).toBe(TRIES)
  })
})

describe.each(BINDINGS)('$name', (binding) => {
  test(`${TWINS} identical requests at once: one runs, the others are told that it is in flight`, async () => {
    const end = gate()
    const serving = await serve(binding, async (_req, res) => {
      await end.opened
      res.end('paid')
    })
    const twins = Array.from({ length: TWINS }, () => request(serving.port, { key: 'k', body: { amount: 1 } }))
    let refused = 0
    const answered = twins.map(async (twin) => {
      const reply = await twin
      if (reply.status === 409) refused++
      if (refused === TWINS - 1) end.open()
      return reply
    })
    const replies = await Promise.all(answered)

    expect(serving.runs()).toBe(1)
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    const refusals = replies.filter(({ status }) => status === 409)
    expect(refusals).toHaveLength(TWINS - 1)
    for (const refusal of refusals) {
      expect(refusal.json()).toMatchObject({ code: 'in_flight' })
      expect(refusal.header('Retry-After')).toMatch(/^[1-8]$/)
      expect(refusal.header('X-Should-Retry')).toBe('true')
    }
    expect((await request(serving.port, { key: 'k', body: { amount: 1 } })).header('Idempotent-Replayed')).toBe('true')
  })

  test(`${TWINS} identical requests at once, a fast handler: one runs, and every success is its answer`, async () => {
    let count = 0
    const serving = await serve(binding, (_req, res) => res.end(`run ${++count}`))
    const replies = await Promise.all(Array.from({ length: TWINS }, () => request(serving.port, { key: 'k' })))

    expect(serving.runs()).toBe(1)
    for (const reply of replies) {
      if (reply.status === 200) expect(reply.body.toString()).toBe('run 1')
      else expect(reply.json()).toMatchObject({ status: 409, code: 'in_flight' })
    }
  })

  test('the same key with another body is told so, and the handler does not run', async () => {
    const serving = await serve(binding, (_req, res) => res.end('paid'))
    await request(serving.port, { key: 'k', body: { amount: 1 } })
    const other = await request(serving.port, { key: 'k', body: { amount: 2 } })
    expect(other.status).toBe(409)
    expect(other.header('Content-Type')).toBe('application/problem+json')
    expect(other.header('X-Should-Retry')).toBe('false')
    expect(other.lines('Retry-After')).toEqual([])
    expect(other.json()).toMatchObject({ code: 'mismatched' })
    expect(serving.runs()).toBe(1)
  })

  test('a duplicate that waits gets the owner’s answer', async () => {
    const end = gate()
    const started = gate()
    const serving = await serve(
      binding,
      async (_req, res) => {
        started.open()
        await end.opened
        res.end('paid')
      },
      { options: { inFlightWaitMs: 60_000 } },
    )
    const first = request(serving.port, { key: 'k' })
    await started.opened
    const second = request(serving.port, { key: 'k' })
    end.open()
    expect((await first).body.toString()).toBe('paid')
    expect((await second).header('Idempotent-Replayed')).toBe('true')
  })
})
