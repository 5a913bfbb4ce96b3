import { setTimeout as wait } from 'node:timers/promises'
import express from 'express'
import { agenticCommerce, type IdempotencyOptions, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expectOnce } from 'once-per-key/testing'
import { describe, expect, test } from 'vitest'

// A refusal counted only with the status 409, although `problemStatuses` may give it another one, and `renderProblem` another body.

const WITHOUT_CODE = { renderProblem: ({ title }: { title: string }) => ({ body: { error: title } }) }

/** Pays once for each derived key, slowly enough that requests at once meet. */
function payouts(options: Partial<IdempotencyOptions>) {
  const paid = new Set<string>()
  let failing: 'before' | 'after' | undefined
  const app = express()
    .use(express.json(), idempotency({ store: new MemoryStore(), scope: () => 'acme', ...options }))
    .post('/payouts', async (req, res) => {
      const when = failing
      failing = undefined
      if (when === 'before') return void res.sendStatus(502)
      await wait(10)
      paid.add(String(req.idempotency?.deriveKey('bank')))
      if (when === 'after') return void res.sendStatus(502)
      res.status(201).json({ paid: paid.size })
    })
  const fail = (when: 'before' | 'after') => {
    failing = when
  }
  return expectOnce(app, { path: '/payouts', body: { amount: 100 } }, { effects: () => paid.size, fail })
}

describe('expectOnce takes as right', () => {
  test.each<[string, Partial<IdempotencyOptions>]>([
    ['425 where a request is in flight', { problemStatuses: { in_flight: 425 } }],
    ['423 there', { problemStatuses: { in_flight: 423 } }],
    ['503 there', { problemStatuses: { in_flight: 503 } }],
    ['423 there, by its header alone', { problemStatuses: { in_flight: 423 }, ...WITHOUT_CODE }],
    ['410 where an answer is not kept', { problemStatuses: { answer_not_kept: 410 }, maxAnswerBytes: 4 }],
    ['422 where the outcome is unknown', { problemStatuses: { outcome_unknown: 422 }, unknownOutcome: 'refuse' }],
    ['the words of a protocol', { profile: agenticCommerce }],
  ])('%s', async (_what, options) => {
    expect((await payouts(options)).skipped).toEqual([])
  })
})

test.each<[string, Partial<IdempotencyOptions>]>([
  ['answer_not_kept', { maxAnswerBytes: 4 }],
  ['outcome_unknown', { unknownOutcome: 'refuse' }],
])('a refusal without its code is another one: expectOnce says that it needs %s', async (code, options) => {
  await expect(payouts({ ...options, ...WITHOUT_CODE })).rejects.toThrow(`a refusal with the code ${code}`)
})

test('a repeat that is refused as another request is none that is right', async () => {
  let requests = 0
  const fingerprint = () => `${++requests}`
  await expect(payouts({ fingerprint })).rejects.toThrow(/^the repeat did not get the first answer: it was refused/)
})
