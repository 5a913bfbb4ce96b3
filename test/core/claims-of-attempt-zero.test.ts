import { expect, test } from 'vitest'
import { engineOnTrial, outcomeOf } from '../support/engine-on-trial.js'
import { answerWith } from '../support/faults.js'

// A store that counts attempts from 0 was believed: its runs passed for unprotected ones, with no lease to lose and no
// `claimed` event, and went on as if nothing were wrong.
test.each([0, -1, 1.5])('a claim of attempt %d is no reply: 503, and the handler does not run', async (attempt) => {
  const { store, engine, send, types } = engineOnTrial()
  store.next('begin', answerWith({ acquired: true, attempt, previousOutcome: 'none' }))
  expect(outcomeOf(await send())).toBe('store_unavailable')
  await engine.idle()
  expect(types()).toEqual(['store_failed'])
  expect(store.names()).toEqual(['begin', 'release'])
})
