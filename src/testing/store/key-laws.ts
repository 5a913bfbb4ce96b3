import { randomUUID } from 'node:crypto'
import { type Bench, createLaws, type Law } from '../bench.js'
import { ANSWER, OTHER_FINGERPRINT } from '../claimant.js'
import { assertPromise, expectAcquired, expectStale, getReplayedAnswer, NEW, OK, refused } from '../seen.js'
import {
  assertKeptOut,
  claimAndLapse,
  completed,
  failedUncertain,
  hideForeignAnswer,
  takeOverLapsed,
} from '../situations.js'

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
export const keyLaws: readonly Law[] = createLaws({
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
    assertPromise(await bench.look(there), bench.inFlight(other), 'A token owns only the record that it claimed.')
    assertPromise(await other.complete(), OK, 'Its owner completes.')
    assertPromise(await bench.look(here), bench.inFlight(owner), 'The completion of one key does not change another.')
  },

  'apart: claims of 50 keys at once all succeed': async (bench) => {
    const keys = Array.from({ length: 50 }, (_, i) => `${bench.key}:${i}`)
    const begun = await Promise.all(keys.map((key) => bench.claimant({ key }).begin()))
    assertPromise(begun, Array(50).fill(NEW), 'A claim does not block a claim of another key.')
  },
})

async function ownRecordEach(bench: Bench, keys: readonly string[]): Promise<void> {
  const owners = []
  for (const key of keys) {
    const owner = bench.claimant({ key })
    assertPromise(await owner.begin(), NEW, `A key that was never claimed is new: ${shown(key)}.`)
    owners.push(owner)
  }
  for (const [i, owner] of owners.entries()) {
    const done = await owner.complete({ ...ANSWER, status: 200 + i })
    assertPromise(done, OK, `Each key is completed by its own owner: ${shown(keys[i] as string)}.`)
  }
  for (const [i, key] of keys.entries()) {
    const answer = getReplayedAnswer(await bench.claimant({ key }).begin())
    assertPromise(answer?.status, 200 + i, `Each key gets its own answer: ${shown(key)}.`)
  }
}

function shown(key: string): string {
  return key.length > 80 ? `…${key.slice(-20)} (${key.length} characters)` : key
}

/** Bound, and fresh means fresh: what a record keeps about earlier attempts. */
export const boundKeyLaws: readonly Law[] = createLaws({
  'bound: a completed key belongs to its fingerprint': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.complete()
    const begun = await bench.claimant({ fingerprint: OTHER_FINGERPRINT }).begin()
    const record = hideForeignAnswer(OTHER_FINGERPRINT, completed(owner))
    assertPromise(begun, refused(record), 'A claim with another fingerprint gets the bound record.')
  },

  'bound: a command that comes with another fingerprint is not shown the answer': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.complete()
    const record = { ...completed(owner), answer: null }
    // It makes no difference which token is sent, or which command is refused.
    for (const token of [owner.token, randomUUID()]) {
      const other = bench.claimant({ token, fingerprint: OTHER_FINGERPRINT, attempt: 1 })
      assertPromise(await other.begin(), refused(record), 'begin shows the record without its answer.')
      assertPromise(await other.renew(), expectStale(record), 'renew shows the record without its answer.')
      assertPromise(await other.release(), expectStale(record), 'release shows the record without its answer.')
    }
    const stranger = bench.claimant({ fingerprint: OTHER_FINGERPRINT, attempt: 1 })
    assertPromise(await stranger.complete(), expectStale(record), 'complete shows the record without its answer.')
    assertPromise(await bench.look(), completed(owner), 'A command with the same fingerprint gets the answer.')
  },

  'bound: a released key may be claimed with another fingerprint': async (bench) => {
    await (await bench.claimant().claims()).release()
    const corrected = await bench.claimant({ fingerprint: OTHER_FINGERPRINT }).claims()
    await corrected.complete()
    assertPromise(
      (await bench.look())?.fingerprint,
      OTHER_FINGERPRINT,
      'A corrected request may follow a failure, and binds the key.',
    )
  },

  'bound: a key in flight belongs to its fingerprint, lapsed or not': async (bench) => {
    const owner = await claimAndLapse(bench)
    const other = bench.claimant({ fingerprint: OTHER_FINGERPRINT })
    const record = bench.inFlight(owner, { lease: 'lapsed' })
    assertPromise(await other.begin(), refused(record), 'A lapsed record stays bound to its fingerprint.')
  },

  'bound: an uncertain failure keeps its fingerprint through a takeover and its failure': async (bench) => {
    await (await bench.claimant().claims()).release({ uncertain: true })
    const owner = await bench.claimant().claims()
    await owner.release()
    const other = bench.claimant({ fingerprint: OTHER_FINGERPRINT })
    const due = refused(failedUncertain(owner, 2))
    assertPromise(await other.begin(), due, 'An uncertain record stays bound to its fingerprint.')
  },

  'bound: the attempt only grows, through failures, lapses and uncertainty': async (bench) => {
    await (await bench.claimant().claims()).release()
    await (await bench.claimant().claims()).release()
    await claimAndLapse(bench)
    await (await bench.claimant().claims()).release()
    const fifth = bench.claimant()
    assertPromise(await fifth.begin(), expectAcquired(5, 'unknown'), 'The claim after four attempts is the fifth.')
    await fifth.complete()
    assertPromise(await bench.look(), completed(fifth, 5), 'The completed record shows attempt 5.')
  },

  "bound: the attempt is the record's own, whatever its owner says": async (bench) => {
    await (await bench.claimant().claims()).release()
    const owner = await bench.claimant().claims()
    assertPromise(await owner.renew({ attempt: 9 }), OK, 'The token proves who owns it.')
    assertPromise(await bench.look(), bench.inFlight(owner, { attempt: 2 }), 'renew does not change the attempt.')
    await owner.release({ attempt: 0 })
    const next = bench.claimant()
    assertPromise(await next.begin(), expectAcquired(3, 'failed'), 'release does not change the attempt.')
    await next.complete(undefined, { attempt: 9 })
    assertPromise(await bench.look(), completed(next, 3), 'complete does not change the attempt.')
  },

  "bound: the fingerprint is the record's own, whatever its owner says": async (bench) => {
    const owner = await bench.claimant().claims()
    const other = { fingerprint: OTHER_FINGERPRINT }
    await owner.begin(other)
    assertPromise(await bench.look(), bench.inFlight(owner), 'begin of its token does not change the fingerprint.')
    await owner.renew(other)
    assertPromise(await bench.look(), bench.inFlight(owner), 'renew does not change the fingerprint.')
  },

  'fresh: after certain failures the outcome is failed': async (bench) => {
    for (let attempt = 1; attempt <= 4; attempt++) {
      const claimant = bench.claimant()
      const due = expectAcquired(attempt, attempt === 1 ? 'none' : 'failed')
      assertPromise(await claimant.begin(), due, 'After certain failures the outcome is not unknown.')
      await claimant.release()
    }
  },

  'fresh: an attempt that failed after it may have had an effect leaves the outcome unknown': async (bench) => {
    await (await bench.claimant().claims()).release({ uncertain: true })
    assertPromise(
      await bench.claimant().begin(),
      expectAcquired(2, 'unknown'),
      'An uncertain failure is reported to the next attempt.',
    )
  },

  'fresh: an attempt that stalled leaves the outcome unknown': async (bench) => {
    await claimAndLapse(bench)
    assertPromise(
      await bench.claimant().begin(),
      expectAcquired(2, 'unknown'),
      'A lapse is reported to the next attempt.',
    )
  },

  'fresh: uncertain is only ever added: no failing takeover forgets it': async (bench) => {
    const owner = await takeOverLapsed(bench, bench.longMs)
    await owner.release({ uncertain: false })
    assertPromise(
      await bench.look(),
      failedUncertain(owner, 2),
      'A takeover that fails for certain leaves the record uncertain.',
    )
    assertPromise(
      await bench.claimant().begin(),
      expectAcquired(3, 'unknown'),
      'The next attempt gets the unknown outcome.',
    )
  },

  'fresh: a takeover of an uncertain failure stays uncertain when it fails': async (bench) => {
    await (await bench.claimant().claims()).release({ uncertain: true })
    await (await bench.claimant().claims()).release({ uncertain: false })
    assertPromise(await bench.claimant().begin(), expectAcquired(3, 'unknown'), 'The first attempt stays uncertain.')
  },

  'fresh: a renewal does not forget uncertainty': async (bench) => {
    const owner = await takeOverLapsed(bench, bench.longMs)
    await owner.renew({ uncertain: false })
    assertPromise(
      await bench.look(),
      bench.inFlight(owner, { attempt: 2, uncertain: true }),
      'After renew the record is still uncertain.',
    )
  },

  'fresh: a lapse without a takeover leaves nothing uncertain if its owner fails for certain': async (bench) => {
    const owner = await claimAndLapse(bench)
    assertPromise(await owner.release(), OK, 'Its owner can still release it.')
    assertPromise(await bench.claimant().begin(), expectAcquired(2, 'failed'), 'A lapse alone changes nothing.')
  },

  'fresh: a claim that renew restored as uncertain stays so': async (bench) => {
    const owner = bench.claimant({ attempt: 2, uncertain: true })
    await owner.renew()
    await owner.release({ uncertain: false })
    assertPromise(await bench.claimant().begin(), expectAcquired(3, 'unknown'), 'A restored claim stays uncertain.')
  },

  'fresh: a begin refused for an unknown outcome leaves it to a begin that reruns': async (bench) => {
    await claimAndLapse(bench)
    await assertKeptOut(
      bench.claimant({ unknownOutcome: 'refuse' }),
      'A begin that refuses unknown outcomes does not acquire.',
    )
    assertPromise(await bench.claimant().begin(), expectAcquired(2, 'unknown'), 'A refusal changes nothing.')
  },
})
