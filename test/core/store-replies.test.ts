import { createOperationEngine, type EngineEvent, type Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test, vi } from 'vitest'
import { computeRequestFingerprint } from '../../src/http/request/request-fingerprint.js'
import { engineOnTrial, outcomeOf } from '../support/engine-on-trial.js'
import { answerWith } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

/** Of the request that `requestFacts` describes. */
const OWN = computeRequestFingerprint('POST', '/payouts', { amount: 100 }) as string
const IN_FLIGHT = { state: 'in-flight', fingerprint: 'f', attempt: 1, uncertain: false, leaseRemainingMs: 1 }
const COMPLETED = { state: 'completed', fingerprint: 'f', attempt: 1, answer: answer() }

const NO_RECORDS = {
  'no record': undefined,
  'a text': 'in-flight',
  'a state that there is not': { ...IN_FLIGHT, state: 'finished' },
  'a lease that is no number': { ...IN_FLIGHT, leaseRemainingMs: undefined },
  'a fingerprint that is no text': { ...IN_FLIGHT, fingerprint: 7 },
  'a failure that does not say whether it is certain': { state: 'failed', fingerprint: null, attempt: 1 },
  'a completion without an answer': { ...COMPLETED, answer: undefined },
  'a completion without a fingerprint': { ...COMPLETED, fingerprint: null },
  'an answer without a status': { ...COMPLETED, answer: { ...answer(), status: '200' } },
  'an answer without a reason': { ...COMPLETED, answer: { ...answer(), statusMessage: null } },
  'an answer whose headers are an object': { ...COMPLETED, answer: { ...answer(), headers: {} } },
  'an answer with a header that is no pair': { ...COMPLETED, answer: { ...answer(), headers: [null] } },
  'an answer with a header of three': { ...COMPLETED, answer: { ...answer(), headers: [['a', 'b', 'c']] } },
  'an answer with a header that is a number': { ...COMPLETED, answer: { ...answer(), headers: [['a', 1]] } },
  'an answer whose body is a text': { ...COMPLETED, answer: { ...answer(), body: 'paid' } },
  'an answer that cannot be sent': { ...COMPLETED, answer: { ...answer(), status: 600 } },
  'a completion whose answer is hidden from its own fingerprint': { ...COMPLETED, answer: null, fingerprint: OWN },
}

describe('a store that answers a claim with what is no reply has failed: 503, and the handler does not run', () => {
  const replies: [string, unknown][] = [
    ['nothing', undefined],
    ['null', null],
    ['a text', 'acquired'],
    ['no notRun', {}],
    ['a notRun that is none', { acquired: 1, attempt: 1, previousOutcome: 'none' }],
    ['a claim without an attempt', { acquired: true, previousOutcome: 'none' }],
    ['a claim of attempt 0', { acquired: true, attempt: 0, previousOutcome: 'none' }],
    ['a claim that does not say what was before', { acquired: true, attempt: 1 }],
    ['a claim with an outcome that there is not', { acquired: true, attempt: 1, previousOutcome: 'fine' }],
    ...[
      {},
      [null],
      [{ state: 'begun', result: null }],
      [{ label: 'a', state: 'undone', result: null }],
      [{ label: 'a', state: 'begun', result: new Uint8Array() }],
      [{ label: 'a', state: 'done', result: '1' }],
    ].map((steps): [string, unknown] => [
      `a claim with ${JSON.stringify(steps)} for its steps`,
      { acquired: true, attempt: 2, previousOutcome: 'unknown', steps },
    ]),
    ['a refusal for null', { acquired: false, record: null }],
    ...Object.entries(NO_RECORDS).map(([name, record]): [string, unknown] => [
      `a refusal for ${name}`,
      { acquired: false, record },
    ]),
  ]

  test.each(replies)('%s', async (_name, reply) => {
    const { store, send, engine, events } = engineOnTrial()
    store.next('begin', answerWith(reply))
    expect(outcomeOf(await send())).toBe('store_unavailable')
    await engine.idle()
    expect(events).toEqual([
      {
        type: 'store_failed',
        scope: 'acme',
        key: 'order-1',
        command: 'begin',
        error: {
          name: 'TypeError',
          code: 'reply_invalid',
          message: expect.stringMatching(/^The store returned an invalid reply to `begin`: .*expected .+\.$/),
        },
      },
    ])
    expect(store.names()).toEqual(['begin', 'release'])
  })
})

describe('a store that answers an end with what is no reply has not confirmed it', () => {
  const replies: [string, unknown][] = [
    ['no notRun', {}],
    ['a notRun that is none', { ok: 'ok' }],
    ...Object.entries(NO_RECORDS).map(([name, record]): [string, unknown] => [
      `stale, with ${name}`,
      { ok: false, record },
    ]),
  ]

  test.each(replies)('%s', async (_name, reply) => {
    const { store, run, engine, types } = engineOnTrial()
    const execution = await run()
    store.next('complete', answerWith(reply))
    expect(await execution.settle(answer())).toEqual({ action: 'send' })
    await engine.idle() // Asked again, it is stored.
    expect(types()).toEqual(['claimed', 'store_failed', 'completion_pending', 'completed'])
  })
})

describe('a store that answers a walk with what is no reply has failed', () => {
  const record = { state: 'failed', fingerprint: 'f', attempt: 1, uncertain: true }
  const listed = { key: 'acme:k', record, retentionRemainingMs: 1 }

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['no list', { records: {}, next: null }],
    ['no place to go on', { records: [] }],
    ['a place that is no text', { records: [], next: 7 }],
    ['a list of nothing', { records: [null], next: null }],
    ['a record without a key', { records: [{ ...listed, key: undefined }], next: null }],
    ['a record that is none', { records: [{ ...listed, record: null }], next: null }],
    ['a record that is kept for no time', { records: [{ ...listed, retentionRemainingMs: null }], next: null }],
    ['unreadable keys that are no list', { records: [], next: null, unreadable: 'acme:k' }],
    ['unreadable keys that are no texts', { records: [], next: null, unreadable: [7] }],
  ])('%s', async (_name, reply) => {
    const store = new MemoryStore()
    vi.spyOn(store, 'list').mockReturnValue(reply as never)
    const engine = createOperationEngine({ store, onEvent() {} })
    await expect(engine.unknown()[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: 'store_failed',
      message: expect.stringContaining('invalid reply to `list`'),
    })
  })
})

describe('without a claim', () => {
  function looked(unclaimed: Partial<Record<'look' | 'fence', unknown>>) {
    const free = { acquired: true, attempt: 1, previousOutcome: 'none', seen: null }
    const { look = free, fence } = unclaimed
    const commands = { look: () => look, fence: () => fence, withhold: () => ({ ok: true }) }
    const store = Object.assign(new MemoryStore(), { unclaimed: commands }) as Store
    const events: EngineEvent[] = []
    const engine = createOperationEngine({ store, effects: 'in-transaction', onEvent: (event) => events.push(event) })
    const claim = () => engine.claim({ namespace: 'n', scope: 's', key: 'k', fingerprint: 'f' })
    return { claim, types: () => events.map(({ type }) => type) }
  }

  test.each<[string, unknown]>([
    ['that does not say what it has seen', { acquired: true, attempt: 1, previousOutcome: 'none' }],
    ['that is free at attempt 0', { acquired: true, attempt: 0, previousOutcome: 'none', seen: null }],
    ['that is neither', {}],
  ])('a look %s lets nothing run', async (_name, look) => {
    const { claim, types } = looked({ look })
    expect(await claim()).toMatchObject({ action: 'refuse', code: 'store_unavailable' })
    expect(types()).toEqual(['store_failed'])
  })

  test.each<[string, unknown]>([
    ['does not say whether the key is taken', { isOwn: false, record: null }],
    ['does not say whose record it is', { isTaken: false, record: null }],
    ['has a record that is none', { isTaken: false, isOwn: false, record: {} }],
  ])('a fence that %s lets no failure out', async (_name, fence) => {
    const { claim } = looked({ fence })
    const claimed = await claim()
    if (claimed.action !== 'execute') throw new Error('refused')
    expect(await claimed.run.fail('certainly', 'refused')).toMatchObject({ code: 'store_unavailable' })
  })
})
