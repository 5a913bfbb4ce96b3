import { type Bench, everywhere, type Law } from '../bench.js'
import { ANSWER } from '../claimant.js'
import { promised } from '../seen.js'

/** Strings that a store might interpret or normalise. Each is a separate key. */
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

/** The longest possible storage key: 255 characters of a scope and 255 of a key, four bytes each, percent-encoded. */
const LONGEST = `${'%F0%9F%92%B6'.repeat(255)}:${'%F0%9F%92%B6'.repeat(254)}`

/** Apart: no two keys share a record. */
export const keyLaws: readonly Law[] = everywhere({
  'apart: each key has its own record, however similar two keys are': (bench) =>
    ownRecordEach(
      bench,
      ODD_KEYS.map((odd) => `${bench.key}:${odd}`),
    ),

  'apart: two keys of 255 characters that differ in the last have separate records': (bench) => {
    const prefix = 'k'.repeat(254 - bench.key.length)
    return ownRecordEach(bench, [`${bench.key}${prefix}1`, `${bench.key}${prefix}2`, `${bench.key}${prefix}`])
  },

  'apart: two of the longest storage keys that differ in the last have separate records': (bench) =>
    ownRecordEach(bench, [`${bench.key}${LONGEST}%F0%9F%92%B6`, `${bench.key}${LONGEST}%F0%9F%92%B7`]),

  'apart: a token is not valid for another key': async (bench) => {
    const [here, there] = [`${bench.key}:here`, `${bench.key}:there`]
    const owner = await bench.claimant({ key: here }).claims()
    const other = await bench.claimant({ key: there }).claims()
    await owner.complete(ANSWER, { key: there })
    await owner.release({ key: there })
    promised(await bench.look(there), bench.inFlight(other), 'A token owns only the record that it claimed.')
    promised(await other.complete(), { ok: true }, 'Its owner completes.')
    promised(await bench.look(here), bench.inFlight(owner), 'The completion of one key does not change another.')
  },

  'apart: claims of 50 keys at once all succeed': async (bench) => {
    const keys = Array.from({ length: 50 }, (_, i) => `${bench.key}:${i}`)
    const begun = await Promise.all(keys.map((key) => bench.claimant({ key }).begin()))
    const first = { acquired: true, attempt: 1, previousOutcome: 'none' }
    promised(begun, Array(50).fill(first), 'A claim does not block a claim of another key.')
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
    promised(status, 200 + i, `Each key gets its own answer: ${shown(key)}.`)
  }
}

function shown(key: string): string {
  return key.length > 80 ? `…${key.slice(-20)} (${key.length} characters)` : key
}
