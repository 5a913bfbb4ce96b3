import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { StoreEvent } from 'once-per-key/core'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineOnTrial, outcomeOf, TIMES } from '../support/engine-on-trial.js'
import { failingStore } from '../support/failing-store.js'
import { failBefore, hang } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

const unhandled = vi.fn()
beforeEach(() => void process.on('unhandledRejection', unhandled))
afterEach(() => {
  process.off('unhandledRejection', unhandled)
  unhandled.mockClear()
  vi.useRealTimers()
})

describe('an error of the store', () => {
  const SECRET = 'the answer’s bytes'

  test('is stripped of its command’s arguments, which hold answers', async () => {
    const error = Object.assign(new Error('READONLY You can’t write against a read only replica.'), {
      name: 'ReplyError',
      code: 'READONLY',
      command: { name: 'evalsha', args: [SECRET] },
      previousErrors: [new Error(SECRET)],
      cause: new Error(SECRET),
    })
    const { store, run, events } = engineOnTrial()
    const execution = await run()
    store.next('complete', failBefore(error))
    await execution.settle(answer(201, SECRET))
    const told = events.find(({ type }) => type === 'store_failed')
    expect(told).toEqual({
      type: 'store_failed',
      scope: 'acme',
      key: 'order-1',
      command: 'complete',
      error: { name: 'ReplyError', message: error.message, code: 'READONLY' },
    })
    expect(inspect(events, { depth: 9, showHidden: true })).not.toContain(SECRET)
  })

  test.each([
    { name: 'a text', thrown: SECRET },
    { name: 'an object', thrown: { args: [SECRET] } },
    { name: 'nothing', thrown: undefined },
  ])('that is $name is told without its content', async ({ thrown }) => {
    const { store, send, events } = engineOnTrial()
    store.next('begin', failBefore(thrown))
    await send()
    expect(events).toMatchObject([{ type: 'store_failed', command: 'begin', error: { name: 'Error' } }])
    expect(JSON.stringify(events)).not.toContain(SECRET)
  })

  test('that has no message is told by its class', async () => {
    class TimeoutError extends Error {}
    const { store, send, events } = engineOnTrial()
    store.next('begin', failBefore(new TimeoutError()))
    await send()
    expect(events[0]).toHaveProperty('error', { name: 'Error', message: 'TimeoutError, without a message' })
  })

  test('whose code is no text is told without it', async () => {
    const { store, send, events } = engineOnTrial()
    store.next('begin', failBefore(Object.assign(new Error('down'), { code: { secret: SECRET } })))
    await send()
    expect(events[0]).toHaveProperty('error', { name: 'Error', message: 'down' })
  })

  test('names the command, and the time limit where that was over', async () => {
    vi.useFakeTimers()
    const { store, send, events } = engineOnTrial()
    for (const command of ['begin', 'release'] as const) store.next(command, hang)
    void send()
    await vi.advanceTimersByTimeAsync(2 * TIMES.storeTimeoutMs)
    expect(events).toMatchObject([
      {
        command: 'begin',
        error: { name: 'StoreTimeout', message: expect.stringContaining('1000 ms (storeTimeoutMs)') },
      },
      { command: 'release', error: { name: 'StoreTimeout' } },
    ])
  })
})

describe('a listener', () => {
  test.each([
    {
      name: 'throws',
      onEvent: () => {
        throw new Error('boom')
      },
    },
    { name: 'rejects', onEvent: () => Promise.reject(new Error('boom')) },
  ])('that $name changes nothing', async ({ onEvent }) => {
    const { store, run, send, engine } = engineOnTrial({ onEvent })
    const first = await run()
    expect(outcomeOf(await send())).toBe('in_flight')
    expect(await first.settle(answer(400))).toEqual({ action: 'send' })
    const second = await run()
    store.next('complete', failBefore())
    expect(await second.settle(answer())).toEqual({ action: 'send' })
    await engine.idle()
    expect(outcomeOf(await send())).toBe('replay')
    expect(outcomeOf(await send({ body: { amount: 2 } }))).toBe('mismatched')
    expect(outcomeOf(await send({ key: '' }))).toBe('key_invalid')
    await setImmediate()
    expect(unhandled).not.toHaveBeenCalled()
  })

  test('hears what a store tells of itself', () => {
    const listeners: ((event: StoreEvent) => void)[] = []
    const store = Object.assign(failingStore(), {
      observe: (listener: (event: StoreEvent) => void) => void listeners.push(listener),
    })
    const { events } = engineOnTrial({}, store)
    for (const tell of listeners) tell({ type: 'evicted', state: 'completed' })
    expect(events).toEqual([{ type: 'evicted', state: 'completed' }])
  })

  test('is not needed', async () => {
    const { run } = engineOnTrial({ onEvent: undefined as never })
    expect(await (await run()).settle(answer())).toEqual({ action: 'send' })
  })
})

test('no event holds a body or a header besides the key', async () => {
  const { run, send, events } = engineOnTrial()
  const secret = { body: { card: '4111' }, headers: [['Authorization', 'Bearer 4111']] as const }
  const execution = await run(secret)
  await send(secret)
  await execution.settle({ ...answer(201, '4111'), headers: [['X-Card', '4111']] })
  await send(secret)
  await send({ ...secret, body: { card: '4112' } })
  expect(events.map(({ type }) => type)).toEqual(['claimed', 'in_flight', 'completed', 'replayed', 'mismatched'])
  expect(JSON.stringify(events)).not.toContain('411')
})
