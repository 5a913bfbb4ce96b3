import { describe, expect, test } from 'vitest'
import { requestFingerprint } from '../../src/http/request/request-fingerprint.js'
import { engineOnTrial, outcomeOf } from '../support/engine-on-trial.js'
import { answerWith } from '../support/faults.js'
import { answer } from '../support/request-facts.js'

/** Of the request that `requestFacts` describes. */
const OWN = requestFingerprint('POST', '/payouts', { amount: 100 }) as string
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
