import { createClient } from 'once-per-key/client'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { payouts } from '../../examples/recipes/late-retries.js'
import { listen } from '../support/bindings.js'
import { done, hangUp, keyStorage, problem, reply, type Step, start } from './trial.js'

// A device whose clock was six minutes fast, or a day slow, could never pay: its service refused each first try as one from the future, or
// as one that had expired.

const MINUTE_MS = 60_000
const DAY_MS = 1_440 * MINUTE_MS
const OPERATION = 'pay order-1001'

describe('where a service looks at the time of the first try,', () => {
  test.each([
    { name: 'six minutes fast', aheadMs: 6 * MINUTE_MS, tries: 2 },
    { name: 'two days fast', aheadMs: 2 * DAY_MS, tries: 2 },
    { name: 'a day slow', aheadMs: -DAY_MS, tries: 2 },
    { name: 'four minutes fast', aheadMs: 4 * MINUTE_MS, tries: 1 },
    { name: 'right', aheadMs: 0, tries: 1 },
  ])('a device pays once whose clock is $name', async ({ aheadMs, tries }) => {
    const { open, bank } = await serve(aheadMs)
    const { send, firstSent } = open()
    expect(await send()).toMatchObject({ outcome: 'done', replayed: false })
    expect(firstSent).toHaveLength(tries)
    const { send: sendAfterReload, firstSent: afterReload } = open()
    expect(await sendAfterReload()).toMatchObject({ outcome: 'done', replayed: true })
    expect(afterReload).toEqual([firstSent.at(-1)])
    expect(bank).toHaveBeenCalledTimes(1)
  })

  test('a client that knows the service’s time makes each further key by it', async () => {
    const { open } = await serve(-DAY_MS)
    const { send, firstSent } = open()
    await send()
    expect(await send('pay order-1002')).toMatchObject({ outcome: 'done' })
    expect(firstSent).toHaveLength(3)
  })

  /** A service as the recipe has it, which a device reaches whose clock is so far ahead of the service's. */
  async function serve(aheadMs: number) {
    const bank = vi.fn()
    const app = payouts(new MemoryStore(), (_req, res) => {
      bank()
      res.status(201).json({ id: 'po_1' })
    })
    const { port, close } = await listen(app)
    onTestFinished(close)
    const keys = keyStorage()
    const open = () => {
      const firstSent: (string | null)[] = []
      const fetch = async (url: string | URL | Request, init: RequestInit = {}) => {
        const headers = new Headers(init.headers)
        const said = headers.get('Repeatability-First-Sent')
        firstSent.push(said)
        headers.set('Repeatability-First-Sent', shift(said, aheadMs))
        const response = await globalThis.fetch(url, { ...init, headers })
        const answered = new Headers(response.headers)
        answered.set('Date', shift(answered.get('Date'), -aheadMs))
        return new Response(response.body, { status: response.status, headers: answered })
      }
      const client = createClient({ keys, fetch })
      const headers = { 'Content-Type': 'application/json' }
      const send = (operation = OPERATION) =>
        client.send(operation, `http://127.0.0.1:${port}/payouts`, { body: '{}', headers })
      return { send, firstSent }
    }
    return { open, bank }
  }
})

const shift = (date: string | null, byMs: number) => new Date(Date.parse(`${date}`) + byMs).toUTCString()

describe('what a service says of its time', () => {
  const expired = (date: Record<string, string>): Step =>
    problem(409, 'key_expired', { 'X-Should-Retry': 'false', ...date })
  const inADay = () => ({ Date: new Date(Date.now() + DAY_MS).toUTCString() })

  test('does not make a key look younger that was sent before', async () => {
    const { send, seen } = start([hangUp, (sent) => expired(inADay())(sent), done], { maxTries: 2 })
    expect(await send()).toMatchObject({ outcome: 'unknown', problem: { code: 'key_expired' } })
    const saying = seen.map(({ key, init }) => [key, new Headers(init.headers).get('Repeatability-First-Sent')])
    expect(saying[1]).toEqual(saying[0])
  })

  test('counts for the next key of the same client, once that one is forgotten', async () => {
    const { client, seen } = start([hangUp, (sent) => expired(inADay())(sent), done], { maxTries: 1 })
    const { send, forget } = client()
    for (let call = 0; call < 2; call++) await send(OPERATION, 'http://127.0.0.1/')
    await forget(OPERATION)
    const now = Date.now()
    expect(await send(OPERATION, 'http://127.0.0.1/')).toMatchObject({ outcome: 'done' })
    const said = Date.parse(`${new Headers(seen[2]?.init.headers).get('Repeatability-First-Sent')}`)
    expect(Math.abs(said - now - DAY_MS)).toBeLessThan(2_000)
  })

  test('is asked once: a service that goes on refusing has refused', async () => {
    const { send, seen } = start(Array(3).fill((sent: never) => expired(inADay())(sent)))
    expect(await send()).toMatchObject({ outcome: 'refused', problem: { code: 'key_expired' } })
    expect(seen).toHaveLength(2)
  })

  test('does not lead to more tries than `maxTries`, however often it changes', async () => {
    let hours = 0
    const wandering: Step = (sent) => expired({ Date: new Date(Date.now() + ++hours * 3_600_000).toUTCString() })(sent)
    const { send, seen } = start(Array(20).fill(wandering))
    expect(await send()).toMatchObject({ outcome: 'refused' })
    expect(seen).toHaveLength(8)
  })

  test('counts for a date in Retry-After, which is the service’s own', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    onTestFinished(() => void vi.restoreAllMocks())
    const busy: Step = (sent) => {
      const Date_ = new Date(Date.now() - DAY_MS)
      const headers = { Date: Date_.toUTCString(), 'Retry-After': new Date(Date_.getTime() + 5_000).toUTCString() }
      return reply(503, headers)(sent)
    }
    const { send, pauses } = start([busy, done])
    expect(await send()).toMatchObject({ outcome: 'done' })
    expect(pauses()).toEqual([5_000])
  })
})
