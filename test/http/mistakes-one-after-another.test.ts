import { createRequestEngine, type IdempotencyOptions } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { mistakesOf } from '../support/mistakes-of.js'

// One wrong option kept quiet about every broken relation between others: who corrected it met the next error.

const store = new MemoryStore()
const scope = () => 'acme'

/** The names of the options that the mistakes are about, in their order. */
function namesOf(options: object): string[] {
  const mistakes = mistakesOf(() => createRequestEngine(options as IdempotencyOptions))
  return mistakes.map((mistake) =>
    mistake
      .replace(/:.* (?=is less than)/, ' ')
      .replace(/[:=].*/, '')
      .trim(),
  )
}

test.each([
  { name: 'a scope', wrong: { scope: 5 }, told: 'scope' },
  { name: 'a header', wrong: { header: '' }, told: 'header' },
  { name: 'a store', wrong: { store: {} }, told: 'store' },
  { name: 'a name that there is not', wrong: { colour: 'red' }, told: 'colour' },
  { name: 'a duration of no relation', wrong: { retryAfterMs: -1 }, told: 'retryAfterMs' },
])('$name that is wrong and a lease that is too short are told at once', ({ wrong, told }) => {
  expect(namesOf({ store, scope, leaseMs: 1, ...wrong })).toEqual([told, 'leaseMs is less than 4 × storeTimeoutMs'])
})

test.each([
  { wrong: { leaseMs: '1' }, others: ['maxRunMs is less than inFlightWaitMs'] },
  { wrong: { maxRunMs: 1n }, others: ['leaseMs is less than 4 × storeTimeoutMs'] },
  {
    wrong: { inFlightWaitMs: -1 },
    others: ['leaseMs is less than 4 × storeTimeoutMs', 'maxRunMs is less than leaseMs'],
  },
  {
    wrong: { storeTimeoutMs: Symbol('ms') },
    others: ['maxRunMs is less than leaseMs', 'maxRunMs is less than inFlightWaitMs'],
  },
])('a relation is judged only where both of its sides are right by themselves: $wrong', ({ wrong, others }) => {
  const related = { leaseMs: 7_000, maxRunMs: 6_000, inFlightWaitMs: 6_500 }
  expect(namesOf({ store, scope, ...related, ...wrong })).toEqual([...Object.keys(wrong), ...others])
})
