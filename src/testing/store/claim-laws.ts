import { randomUUID } from 'node:crypto'
import { type Bench, createLaws, DAY_MS, type Law } from '../bench.js'
import { type Claimant, FINGERPRINT, OTHER_ANSWER, OTHER_FINGERPRINT, SEEN_ANSWER } from '../claimant.js'
import {
  assertPromise,
  expectAcquired,
  expectStale,
  failed,
  getReplayedAnswer,
  NEW,
  OK,
  refused,
  type SeenBegun,
} from '../seen.js'
import { claimAndLapse, completed, failedUncertain } from '../situations.js'

const CROWD = 50

/** Exclusive, and fenced: who owns a key, and who no longer does. */
export const claimLaws: readonly Law[] = createLaws({
  'exclusive: of 50 begins at once, one acquires': (bench) => oneOfACrowd(bench, NEW),

  'exclusive: a live lease keeps others out, however often they try': async (bench) => {
    const owner = await bench.claimant().claims()
    for (let i = 0; i < 5; i++) {
      const begun = await bench.claimant().begin()
      assertPromise(begun, refused(bench.inFlight(owner)), 'While a lease is live nobody else claims.')
    }
  },

  'fenced: a command with a token that never claimed changes nothing': async (bench) => {
    const owner = await bench.claimant().claims()
    const stranger = bench.claimant({ attempt: 1 })
    await stranger.complete(OTHER_ANSWER)
    await stranger.release()
    assertPromise(await owner.complete(), OK, 'The owner stays the owner.')
    assertPromise(await bench.look(), completed(owner), "The owner's answer is the one that is stored.")
  },

  'exclusive: of 50 begins at once after a lapse, one takes over': async (bench) => {
    await claimAndLapse(bench)
    await oneOfACrowd(bench, expectAcquired(2, 'unknown'))
  },

  'exclusive: of 50 begins at once after a failure, one claims': async (bench) => {
    await (await bench.claimant().claims()).release()
    await oneOfACrowd(bench, expectAcquired(2, 'failed'))
  },

  'exclusive: a lease holds until its end': (bench) =>
    bench.before(async (key, ms, early) => {
      await bench.claimant().claims({ key, leaseMs: ms })
      await early()
      const begun = await bench.claimant().begin({ key })
      return () =>
        assertPromise(
          { acquired: begun.acquired },
          { acquired: false },
          'Before leaseMs have passed nobody else claims.',
        )
    }),

  'exclusive: a lease ends by itself': async (bench) => {
    await claimAndLapse(bench)
    assertPromise(
      await bench.claimant().begin(),
      expectAcquired(2, 'unknown'),
      'Once leaseMs have passed another may take over.',
    )
  },

  'exclusive: a lease of a day lasts a day, and a refused begin gets its remaining time': async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: DAY_MS, retentionMs: 2 * DAY_MS })
    const leftMs = await leaseLeftMs(bench)
    assertPromise(leftMs <= DAY_MS && leftMs > DAY_MS / 2, true, `Most of the day is left; seen: ${leftMs} ms.`)
    await bench.leap(DAY_MS - 1)
    assertPromise(await bench.claimant().begin(), refused(bench.inFlight(owner)), 'A long lease is live until its end.')
  },

  'exclusive: a refused or stale command does not extend the lease': (bench) =>
    bench.before(async (key, ms, early, late) => {
      await bench.claimant({ key }).claims({ leaseMs: ms })
      await early()
      const begun = await bench.claimant({ key }).begin()
      const renewed = await bench.claimant({ key }).renew()
      return async () => {
        assertPromise([begun.acquired, renewed.ok], [false, false], 'While a lease is live nobody else has the key.')
        await late()
        const due = expectAcquired(2, 'unknown')
        assertPromise(await bench.claimant({ key }).begin(), due, 'The owner decides how long the lease is.')
      }
    }),

  'exclusive: renew starts the lease anew, as long as it says': async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: bench.shortMs })
    await owner.renew({ leaseMs: bench.longMs })
    await bench.pass()
    const due = refused(bench.inFlight(owner))
    assertPromise(await bench.claimant().begin(), due, 'A renewed lease outlasts the previous one.')
    await owner.renew({ leaseMs: bench.shortMs })
    await bench.pass()
    const begun = await bench.claimant().begin()
    assertPromise(
      { acquired: begun.acquired },
      { acquired: true },
      'A renewed lease ends at its own time, even if that is earlier.',
    )
  },

  'exclusive: the lease of a takeover starts at the takeover': (bench) =>
    bench.before(async (key, ms, early) => {
      await bench.claimant({ key }).claims({ leaseMs: 1 })
      await early()
      const taker = await bench.claimant({ key }).claims({ leaseMs: ms / 2 })
      const record = await bench.look(key)
      const due = bench.inFlight(taker, { attempt: 2, uncertain: true })
      return () => assertPromise(record, due, 'It does not matter when the lease before it has ended.')
    }),

  'exclusive: a begin that is sent again starts the lease anew': async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: bench.shortMs })
    await owner.begin({ leaseMs: bench.longMs })
    await bench.pass()
    const due = refused(bench.inFlight(owner))
    assertPromise(await bench.claimant().begin(), due, 'The lease of a repeated begin starts at the repetition.')
  },

  'exclusive: the owner can renew a lapsed lease that nobody took over': async (bench) => {
    const owner = await claimAndLapse(bench)
    assertPromise(await owner.renew(), OK, 'A lapse alone changes nothing.')
    assertPromise(
      await bench.claimant().begin(),
      refused(bench.inFlight(owner)),
      'After the renewal the lease is live.',
    )
    assertPromise(await owner.complete(), OK, 'Its owner completes.')
  },

  'fenced: after a takeover the former owner changes nothing': async (bench) => {
    const [former, owner] = await formerAndOwner(bench)
    const record = bench.inFlight(owner, { attempt: 2, uncertain: true })
    const due = expectStale(record)
    assertPromise(await former.renew(), due, 'renew of a former owner is stale.')
    assertPromise(await former.complete(OTHER_ANSWER), due, 'complete of a former owner is stale.')
    assertPromise(await former.release(), due, 'release of a former owner is stale.')
    assertPromise(await former.begin(), refused(record), 'begin of a former owner is not acquired.')
    assertPromise(await bench.look(), record, 'The commands of a former owner change nothing.')
    assertPromise(await owner.complete(), OK, 'The owner stays the owner.')
  },

  "fenced: after another's failure the former owner changes nothing": async (bench) => {
    const [former, owner] = await formerAndOwner(bench)
    await owner.release()
    const record = failedUncertain(owner, 2)
    const due = expectStale(record)
    assertPromise(await former.renew(), due, 'renew of a former owner is stale.')
    assertPromise(await former.complete(OTHER_ANSWER), due, 'complete of a former owner is stale.')
    assertPromise(await former.release(), due, 'release of a former owner is stale.')
    assertPromise(await bench.look(), record, 'The commands of a former owner change nothing.')
  },

  'fenced: once released, a token neither renews nor completes': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.release()
    const record = failed()
    assertPromise(await owner.renew(), expectStale(record), 'renew after the release is stale.')
    assertPromise(await owner.complete(), expectStale(record), 'complete after the release is stale.')
    const next = await bench.claimant({ fingerprint: OTHER_FINGERPRINT }).claims()
    const inFlight = bench.inFlight(next, { attempt: 2 })
    assertPromise(await owner.complete(), expectStale(inFlight), 'A late completion does not affect a later attempt.')
    assertPromise(await owner.release(), expectStale(inFlight), 'A late release does not affect a later attempt.')
  },

  "one answer: after another's completion a former owner gets that answer": async (bench) => {
    const [former, owner] = await formerAndOwner(bench)
    await owner.complete()
    const due = expectStale(completed(owner, 2))
    assertPromise(await former.complete(OTHER_ANSWER), due, 'complete of a former owner is stale, with the answer.')
    assertPromise(await former.release(), due, 'release of a former owner is stale, with the answer.')
    assertPromise(await former.renew(), due, 'renew of a former owner is stale, with the answer.')
    assertPromise(await bench.look(), completed(owner, 2), 'The answer stays.')
  },

  'one answer: of 20 completions at once, one answer is stored and never changes': async (bench) => {
    const owner = await bench.claimant().claims()
    const answers = Array.from({ length: 20 }, (_, i) => ({ ...OTHER_ANSWER, status: 201 + i }))
    const replies = await Promise.all(answers.map((answer) => owner.complete(answer)))
    assertPromise(
      replies.every((reply) => reply.ok),
      true,
      'A completion that is sent again is confirmed again.',
    )
    const first = await bench.look()
    await owner.complete()
    await owner.release()
    await owner.renew()
    assertPromise(await bench.look(), first, 'Once stored, the answer never changes.')
  },

  'one answer: each retry gets the answer': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.complete()
    for (let i = 0; i < 3; i++) {
      const begun = await bench.claimant().begin()
      assertPromise({ acquired: begun.acquired }, { acquired: false }, 'A completed key is never claimed again.')
      assertPromise(getReplayedAnswer(begun), SEEN_ANSWER, 'A retry gets the answer.')
    }
  },
})

async function oneOfACrowd(bench: Bench, winner: SeenBegun): Promise<void> {
  const begun = await Promise.all(Array.from({ length: CROWD }, () => bench.claimant().begin()))
  const winners = begun.filter((each) => each.acquired)
  assertPromise(winners, [winner], `Of ${CROWD} begins at once, one acquires.`)
}

async function leaseLeftMs({ store, key }: Bench): Promise<number> {
  const terms = { leaseMs: DAY_MS, retentionMs: DAY_MS, unknownOutcome: 'refuse' } as const
  const begun = await store.begin(key, { token: randomUUID(), scope: 'laws', fingerprint: FINGERPRINT, ...terms })
  return !begun.acquired && begun.record.state === 'in-flight' ? begun.record.leaseRemainingMs : 0
}

async function formerAndOwner(bench: Bench): Promise<[former: Claimant, owner: Claimant]> {
  const former = await claimAndLapse(bench)
  return [former, await bench.claimant().claims()]
}
