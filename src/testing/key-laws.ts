import type { Bench } from './bench.js'
import { ANSWER } from './claimant.js'
import { everywhere, type Law } from './law.js'
import { promised } from './seen.js'

/** Names that a store may be tempted to read as more than a name. Each is a key of its own. */
const ODD_KEYS = [
  'a',
  'A',
  'a:b',
  'a%3Ab',
  'a%253Ab',
  'a:b:',
  ':a:b',
  'a::b',
  '{a}b',
  '{a}c',
  '{}',
  '%7Ba%7Db',
  '%',
  '%25',
  '%00',
  'a%00b',
  'a*',
  'a?',
  '[ab]',
  'a\\b',
  'a/b',
  '../a',
  "a'b",
  'a"b',
  'a b',
  'a%20b',
  '__proto__',
  'constructor',
  'toString',
  '0',
  '00',
  '1e3',
  '1000',
  'null',
  'undefined',
  '%E2%82%AC',
  '%e2%82%ac',
  '\u20ac',
  '%C3%A9',
  'e\u0301',
  '\u00e9',
  '%F0%9F%92%B6',
]

/** 255 characters of a scope and 255 of a key, of four bytes each, percent-encoded: the longest storage key there is. */
const LONGEST = `${'%F0%9F%92%B6'.repeat(255)}:${'%F0%9F%92%B6'.repeat(254)}`

/** Apart: no key meets another. */
export const keyLaws: readonly Law[] = everywhere({
  'apart: each key has a record of its own, however alike two look': (bench) =>
    ownRecordEach(
      bench,
      ODD_KEYS.map((odd) => `${bench.key}:${odd}`),
    ),

  'apart: two keys of 255 characters that differ in the last have a record each': (bench) => {
    const prefix = 'k'.repeat(254 - bench.key.length)
    return ownRecordEach(bench, [`${bench.key}${prefix}1`, `${bench.key}${prefix}2`, `${bench.key}${prefix}`])
  },

  'apart: two of the longest storage keys that differ in the last have a record each': (bench) =>
    ownRecordEach(bench, [`${bench.key}${LONGEST}%F0%9F%92%B6`, `${bench.key}${LONGEST}%F0%9F%92%B7`]),

  'apart: a token is worth nothing on another key': async (bench) => {
    const [here, there] = [`${bench.key}:here`, `${bench.key}:there`]
    const owner = await bench.claimant({ key: here }).claims()
    const other = await bench.claimant({ key: there }).claims()
    await owner.complete(ANSWER, { key: there })
    await owner.release({ key: there })
    promised(await bench.look(there), bench.inFlight(other), 'A token owns the record that it claimed, and no other.')
    promised(await other.complete(), { ok: true }, 'Its owner completes.')
    promised(await bench.look(here), bench.inFlight(owner), 'The completion of one key leaves another alone.')
  },

  'apart: claims of 50 keys at once all succeed': async (bench) => {
    const keys = Array.from({ length: 50 }, (_, i) => `${bench.key}:${i}`)
    const begun = await Promise.all(keys.map((key) => bench.claimant({ key }).begin()))
    const first = { acquired: true, attempt: 1, previousOutcome: 'none' }
    promised(begun, Array(50).fill(first), 'No claim keeps one of another key out.')
  },
})

async function ownRecordEach(bench: Bench, keys: readonly string[]): Promise<void> {
  const owners = []
  for (const key of keys) {
    const owner = bench.claimant({ key })
    const first = { acquired: true, attempt: 1, previousOutcome: 'none' }
    promised(await owner.begin(), first, `A key that was never claimed is new: ${shown(key)}.`)
    owners.push(owner)
  }
  for (const [i, owner] of owners.entries()) {
    const done = await owner.complete({ ...ANSWER, status: 200 + i })
    promised(done, { ok: true }, `Each key is completed by its own owner: ${shown(keys[i] as string)}.`)
  }
  for (const [i, key] of keys.entries()) {
    const begun = await bench.claimant({ key }).begin()
    const status = !begun.acquired && 'answer' in begun.record ? begun.record.answer?.status : null
    promised(status, 200 + i, `Each key is given its own answer: ${shown(key)}.`)
  }
}

function shown(key: string): string {
  return key.length > 80 ? `…${key.slice(-20)} (${key.length} characters)` : key
}
