import { AsyncLocalStorage } from 'node:async_hooks'
import { tracingChannel } from 'node:diagnostics_channel'
import { createOperationEngine, type Store, type StoreEvent } from 'once-per-key/core'
import { createRequestEngine } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { engineOnTrial, type Options, TIMES } from '../support/engine-on-trial.js'
import { failBefore, hang } from '../support/faults.js'
import { answer, type Request } from '../support/request-facts.js'
import { ended, phasesOf, traces } from '../support/traces.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const ABOUT = { scope: 'acme', key: 'order-1', namespace: undefined }
const RUN_ID = /^[0-9a-f]{32}$/

describe('a claim', () => {
  test('that is waited for is told of four times, with one message', async () => {
    const { claims } = traces()
    await engineOnTrial().run()
    expect(phasesOf(claims)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd'])
    const begun = { ...ABOUT, runId: expect.stringMatching(RUN_ID) }
    const told = { ...begun, outcome: 'run', attempt: 1, previousOutcome: 'none' }
    expect(claims.map(({ phase, ...message }) => message)).toEqual([begun, begun, told, told])
  })

  test('that is answered at once is told of twice', () => {
    const { claims, commands } = traces()
    const engine = createOperationEngine({ store: new MemoryStore() })
    void engine.claim({ namespace: 'invoices', scope: 'acme', key: 'in_7', fingerprint: 'f' })
    expect(phasesOf(claims)).toEqual(['start', 'end'])
    expect(phasesOf(commands)).toEqual(['start', 'end'])
    expect(claims[1]).toMatchObject({ namespace: 'invoices', scope: 'acme', key: 'in_7', outcome: 'run' })
    expect(commands[1]).toMatchObject({ namespace: 'invoices', scope: 'acme', key: 'in_7', outcome: 'ok' })
  })

  test.each<{ outcome: string; second?: Request; options?: Options; end?: number; facts?: object }>([
    { outcome: 'replay', end: 201 },
    { outcome: 'in_flight' },
    { outcome: 'mismatched', second: { body: { amount: 200 } } },
    { outcome: 'outcome_unknown', end: 500, options: { unknownOutcome: 'refuse' } },
    { outcome: 'run', end: 500, facts: { attempt: 2, previousOutcome: 'unknown' } },
    { outcome: 'run', end: 422, facts: { attempt: 2, previousOutcome: 'failed' } },
  ])('tells that the second request is told $outcome $end', async ({ outcome, second = {}, options, end, facts }) => {
    const { run, send } = engineOnTrial(options)
    const first = await run()
    if (end !== undefined) await first.settle(answer(end))
    const { claims } = traces()
    await send(second)
    expect(ended(claims)).toMatchObject([{ ...ABOUT, outcome, ...facts }])
  })

  test.each([
    { storeFailure: 'refuse', outcome: 'store_unavailable', facts: {} },
    { storeFailure: 'runUnprotected', outcome: 'unprotected', facts: { attempt: 0, previousOutcome: 'unknown' } },
  ] as const)('tells what a store that fails means: $outcome', async ({ storeFailure, outcome, facts }) => {
    const { store, send } = engineOnTrial({ storeFailure })
    const { claims } = traces()
    store.next('begin', failBefore())
    await send()
    expect(ended(claims)).toMatchObject([{ ...ABOUT, outcome, ...facts }])
  })
})

describe('a command', () => {
  test.each([
    { end: 201, commands: ['begin', 'complete'] },
    { end: 422, commands: ['begin', 'release'] },
  ])('of a run that ends with $end is told of, with the run’s id', async ({ end, commands: names }) => {
    const { claims, commands } = traces()
    const { run } = engineOnTrial()
    await (await run()).settle(answer(end))
    const { runId } = claims[0] ?? {}
    expect(ended(commands)).toEqual(
      names.map((command) => ({ ...ABOUT, phase: 'asyncEnd', command, runId, attempt: 1, outcome: 'ok' })),
    )
  })

  test('that renews a lease is told of', async () => {
    const { commands } = traces()
    await engineOnTrial().run()
    await vi.advanceTimersByTimeAsync(TIMES.leaseMs / 3)
    expect(ended(commands)).toMatchObject([
      { command: 'begin' },
      { command: 'renew', attempt: 1, outcome: 'ok', runId: commands[0]?.runId },
    ])
  })

  test('that the record does not allow is refused, with the attempt that stands', async () => {
    const { send, run } = engineOnTrial()
    await (await run()).fail()
    await run()
    const { commands } = traces()
    await send()
    expect(ended(commands)).toMatchObject([{ command: 'begin', outcome: 'refused', attempt: 2 }])
  })

  test('that finds its record to be another’s is refused, with its own attempt', async () => {
    const { store, run } = engineOnTrial()
    const first = await run()
    store.always('renew', hang)
    await vi.advanceTimersByTimeAsync(TIMES.leaseMs)
    await run()
    const { commands } = traces()
    await first.settle(answer())
    expect(ended(commands)).toMatchObject([{ command: 'complete', outcome: 'refused', attempt: 1 }])
  })

  test('that fails has the error of the store’s client, in words', async () => {
    const { commands } = traces()
    const { store, send, events } = engineOnTrial()
    const error = Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED', args: ['secret'] })
    store.next('begin', failBefore(error))
    await send()
    const failed = { name: 'Error', message: 'connection refused', code: 'ECONNREFUSED' }
    expect(phasesOf(commands).slice(0, 5)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd'])
    expect(commands[2]).toMatchObject({ command: 'begin', outcome: 'failed' })
    expect(commands[2]?.error).toEqual(failed)
    expect(events).toMatchObject([{ type: 'store_failed', error: failed }])
  })

  test('that throws before there is a promise fails at once', () => {
    const { commands } = traces()
    const store = { ...noStore, begin: fail }
    void createOperationEngine({ store, onEvent() {} }).claim({ scope: 'acme', key: 'order-1', fingerprint: 'f' })
    expect(phasesOf(commands).slice(0, 3)).toEqual(['start', 'error', 'end'])
    expect(commands[1]).toMatchObject({ outcome: 'failed', error: { message: 'not connected' } })
  })

  test('that is not answered has timed out at its time limit, and nothing is told of a late answer', async () => {
    const { commands } = traces()
    const { store, run } = engineOnTrial()
    const first = await run()
    let late = (): void => {}
    store.next('complete', (take) => new Promise((resolve) => (late = () => resolve(take()))))
    const settling = first.settle(answer())
    expect(ended(commands)).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(TIMES.storeTimeoutMs)
    await settling
    expect(ended(commands)[1]).toMatchObject({
      command: 'complete',
      outcome: 'timed_out',
      error: { name: 'StoreTimeout' },
    })
    late()
    await vi.advanceTimersByTimeAsync(TIMES.storeTimeoutMs)
    expect(ended(commands)).toHaveLength(2)
  })

  test('that is sent again is told of again', async () => {
    const { commands } = traces()
    const { store, engine, run } = engineOnTrial()
    const first = await run()
    store.next('complete', failBefore())
    await first.settle(answer())
    await vi.advanceTimersByTimeAsync(100)
    await engine.idle()
    expect(ended(commands)).toMatchObject([
      { command: 'begin', outcome: 'ok' },
      { command: 'complete', outcome: 'failed' },
      { command: 'complete', outcome: 'ok' },
    ])
  })

  test('of an operator’s is told of, without a run', async () => {
    const store = new MemoryStore()
    const engine = createOperationEngine({ store, ...TIMES })
    const name = { namespace: 'invoices', scope: 'acme', key: 'in_7' }
    const claimed = await engine.claim({ ...name, fingerprint: 'f' })
    if (claimed.action === 'execute') await claimed.run.fail('perhaps', 'status')
    const { commands } = traces()
    await engine.inspect(name)
    await engine.resolve(name, 1, null)
    await engine.resolve(name, 7, null)
    await engine.inspect({ ...name, key: 'in_8' })
    const outcomes = ended(commands).map(({ command, outcome, attempt }) => [command, outcome, attempt])
    expect(outcomes).toEqual([
      ['inspect', 'ok', 1],
      ['resolve', 'ok', undefined],
      ['resolve', 'refused', undefined],
      ['inspect', 'ok', undefined],
    ])
    for (const message of commands.slice(0, 6)) expect(message).toMatchObject({ ...name, runId: undefined })
  })

  test('runs in the stores that are bound to its channel: a client’s own tracing finds its parent', async () => {
    const storage = new AsyncLocalStorage<string>()
    const { start } = tracingChannel('once-per-key:command')
    start.bindStore(storage, (message) => (message as { command: string }).command)
    onTestFinished(() => void start.unbindStore(storage))
    const seen: unknown[] = []
    const inner = new MemoryStore()
    const store: Store = {
      ...noStore,
      async begin(key, claim) {
        seen.push(storage.getStore())
        return inner.begin(key, claim)
      },
    }
    const engine = createOperationEngine({ store, onEvent() {} })
    await engine.claim({ scope: 'acme', key: 'order-1', fingerprint: 'f' })
    expect(seen).toEqual(['begin'])
    expect(storage.getStore()).toBeUndefined()
  })
})

describe('an event', () => {
  test('of a run has its id, from its claim to its end', async () => {
    const { claims, events, types } = traces()
    const { run, send } = engineOnTrial()
    const first = await run()
    await send()
    await first.settle(answer())
    await send()
    expect(types()).toEqual(['claimed', 'in_flight', 'completed', 'run_ended', 'replayed'])
    const { runId } = claims[0] ?? {}
    expect(runId).toMatch(RUN_ID)
    expect(events.map((message) => message.runId)).toEqual([runId, undefined, runId, runId, undefined])
    expect(events[3]?.event).toEqual({ type: 'run_ended', scope: 'acme', key: 'order-1', attempt: 1 })
    expect(new Set(claims.map((claim) => claim.runId)).size).toBe(3)
  })

  test('is heard by `onEvent` too, but not that a request passed, and that a run is over', async () => {
    const { types } = traces()
    const { run, send, types: heard } = engineOnTrial()
    await send({ key: null })
    await send({ method: 'GET' })
    await send({ key: 'x'.repeat(256) })
    await (await run()).fail()
    expect(types()).toEqual(['bypassed', 'bypassed', 'rejected', 'claimed', 'failed', 'run_ended'])
    expect(heard()).toEqual(['rejected', 'claimed', 'failed'])
  })

  test('of a run whose lease is lost, and whose completion is pending, has its id', async () => {
    const { store, run, engine } = engineOnTrial()
    const first = await run()
    const { events } = traces()
    store.always('renew', hang)
    store.always('complete', failBefore())
    void first.settle(answer())
    await vi.advanceTimersByTimeAsync(TIMES.maxRunMs)
    await engine.idle()
    const ofRun = events.filter(({ runId }) => runId !== undefined)
    expect(ofRun.map(({ event }) => event.type)).toEqual([
      'completion_pending',
      'lease_lost',
      'completion_given_up',
      'run_ended',
    ])
    expect(new Set(ofRun.map(({ runId }) => runId)).size).toBe(1)
  })

  test('of a store comes once, however many engines use it', () => {
    const { types } = traces()
    const listeners: ((event: StoreEvent) => void)[] = []
    const heard: string[] = []
    const store: Store = { ...noStore, observe: (listener) => void listeners.push(listener) }
    for (const name of ['first', 'second']) {
      createRequestEngine({ store, scope: () => 'acme', onEvent: ({ type }) => heard.push(`${name} ${type}`) })
    }
    for (const listener of listeners) listener({ type: 'answer_dropped' })
    expect(types()).toEqual(['answer_dropped'])
    expect(heard).toEqual(['first answer_dropped', 'second answer_dropped'])
  })

  test('that an option failed is told of', async () => {
    const { run } = engineOnTrial({ isSuccess: fail })
    const first = await run()
    const { types } = traces()
    await first.settle(answer())
    expect(types()).toEqual(['option_failed', 'completed', 'run_ended'])
  })
})

test('no message holds a token, a fingerprint or an answer', async () => {
  const { claims, commands, events } = traces()
  const { store, run, send } = engineOnTrial()
  await (await run()).settle(answer(201, 'po_secret'))
  await send()
  const secrets = store.sent.flatMap(({ terms }) => [terms.token, (terms as { fingerprint?: string }).fingerprint])
  const text = JSON.stringify([claims, commands, events])
  expect(secrets).toHaveLength(6)
  for (const secret of [...secrets, 'po_secret']) {
    expect(secret).toBeTypeOf('string')
    expect(text).not.toContain(secret)
  }
})

test('whoever begins to listen while a run is under way hears its end', async () => {
  const { run } = engineOnTrial()
  const first = await run()
  const { commands, types } = traces()
  await first.settle(answer())
  expect(ended(commands)).toMatchObject([{ command: 'complete' }])
  expect(types()).toEqual(['completed', 'run_ended'])
})

function fail(): never {
  throw new Error('not connected')
}

/** Whose commands are not sent. */
const noStore: Store = { begin: fail, renew: fail, complete: fail, release: fail }
