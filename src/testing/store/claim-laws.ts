import { randomUUID } from 'node:crypto'
import { type Bench, DAY_MS, everywhere, type Law } from '../bench.js'
import { type Claimant, FINGERPRINT, OTHER_ANSWER, OTHER_FINGERPRINT, SEEN_ANSWER } from '../claimant.js'
import { acquired, answerTo, failed, NEW, OK, promised, refused, type SeenBegun, stale } from '../seen.js'
import { completed, failedUncertain, lapsed } from '../situations.js'

const CROWD = 50

/** Exclusive, and fenced: who owns a key, and who no longer does. */
export const claimLaws: readonly Law[] = everywhere({
  'exclusive: of 50 begins at once, one acquires': (bench) => oneOfACrowd(bench, NEW),

  'exclusive: a live lease keeps others out, however often they try': async (bench) => {
    const owner = await bench.claimant().claims()
    for (let i = 0; i < 5; i++) {
      const begun = await bench.claimant().begin()
      promised(begun, refused(bench.inFlight(owner)), 'While a lease is live nobody else claims.')
    }
  },

  'fenced: a command with a token that never claimed changes nothing': async (bench) => {
    const owner = await bench.claimant().claims()
    const stranger = bench.claimant({ attempt: 1 })
    await stranger.complete(OTHER_ANSWER)
    await stranger.release()
    promised(await owner.complete(), OK, 'The owner stays the owner.')
    promised(await bench.look(), completed(owner), "The owner's answer is the one that is stored.")
  },

  'exclusive: of 50 begins at once after a lapse, one takes over': async (bench) => {
    await lapsed(bench)
    await oneOfACrowd(bench, acquired(2, 'unknown'))
  },

  'exclusive: of 50 begins at once after a failure, one claims': async (bench) => {
    await (await bench.claimant().claims()).release()
    await oneOfACrowd(bench, acquired(2, 'failed'))
  },

  'exclusive: a lease holds until its end': (bench) =>
    bench.before(async (key, ms, early) => {
      await bench.claimant().claims({ key, leaseMs: ms })
      await early()
      const begun = await bench.claimant().begin({ key })
      return () =>
        promised({ acquired: begun.acquired }, { acquired: false }, 'Before leaseMs have passed nobody else claims.')
    }),

  'exclusive: a lease ends by itself': async (bench) => {
    await lapsed(bench)
    promised(await bench.claimant().begin(), acquired(2, 'unknown'), 'Once leaseMs have passed another may take over.')
  },

  'exclusive: a lease of a day lasts a day, and a refused begin gets its remaining time': async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: DAY_MS, retentionMs: 2 * DAY_MS })
    const leftMs = await leaseLeftMs(bench)
    promised(leftMs <= DAY_MS && leftMs > DAY_MS / 2, true, `Most of the day is left; seen: ${leftMs} ms.`)
    await bench.leap(DAY_MS - 1)
    promised(await bench.claimant().begin(), refused(bench.inFlight(owner)), 'A long lease is live until its end.')
  },

  'exclusive: a refused or stale command does not extend the lease': (bench) =>
    bench.before(async (key, ms, early, late) => {
      await bench.claimant({ key }).claims({ leaseMs: ms })
      await early()
      const begun = await bench.claimant({ key }).begin()
      const renewed = await bench.claimant({ key }).renew()
      return async () => {
        promised([begun.acquired, renewed.ok], [false, false], 'While a lease is live nobody else has the key.')
        await late()
        const due = acquired(2, 'unknown')
        promised(await bench.claimant({ key }).begin(), due, 'The owner decides how long the lease is.')
      }
    }),

  'exclusive: renew starts the lease anew, as long as it says': async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: bench.shortMs })
    await owner.renew({ leaseMs: bench.longMs })
    await bench.pass()
    const due = refused(bench.inFlight(owner))
    promised(await bench.claimant().begin(), due, 'A renewed lease outlasts the previous one.')
    await owner.renew({ leaseMs: bench.shortMs })
    await bench.pass()
    const begun = await bench.claimant().begin()
    promised(
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
      return () => promised(record, due, 'It does not matter when the lease before it has ended.')
    }),

  'exclusive: a begin that is sent again starts the lease anew': async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: bench.shortMs })
    await owner.begin({ leaseMs: bench.longMs })
    await bench.pass()
    const due = refused(bench.inFlight(owner))
    promised(await bench.claimant().begin(), due, 'The lease of a repeated begin starts at the repetition.')
  },

  'exclusive: the owner can renew a lapsed lease that nobody took over': async (bench) => {
    const owner = await lapsed(bench)
    promised(await owner.renew(), OK, 'A lapse alone changes nothing.')
    promised(await bench.claimant().begin(), refused(bench.inFlight(owner)), 'After the renewal the lease is live.')
    promised(await owner.complete(), OK, 'Its owner completes.')
  },

  'fenced: after a takeover the former owner changes nothing': async (bench) => {
    const [former, owner] = await formerAndOwner(bench)
    const record = bench.inFlight(owner, { attempt: 2, uncertain: true })
    const due = stale(record)
    promised(await former.renew(), due, 'renew of a former owner is stale.')
    promised(await former.complete(OTHER_ANSWER), due, 'complete of a former owner is stale.')
    promised(await former.release(), due, 'release of a former owner is stale.')
    promised(await former.begin(), refused(record), 'begin of a former owner is not acquired.')
    promised(await bench.look(), record, 'The commands of a former owner change nothing.')
    promised(await owner.complete(), OK, 'The owner stays the owner.')
  },

  "fenced: after another's failure the former owner changes nothing": async (bench) => {
    const [former, owner] = await formerAndOwner(bench)
    await owner.release()
    const record = failedUncertain(owner, 2)
    const due = stale(record)
    promised(await former.renew(), due, 'renew of a former owner is stale.')
    promised(await former.complete(OTHER_ANSWER), due, 'complete of a former owner is stale.')
    promised(await former.release(), due, 'release of a former owner is stale.')
    promised(await bench.look(), record, 'The commands of a former owner change nothing.')
  },

  'fenced: once released, a token neither renews nor completes': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.release()
    const record = failed()
    promised(await owner.renew(), stale(record), 'renew after the release is stale.')
    promised(await owner.complete(), stale(record), 'complete after the release is stale.')
    const next = await bench.claimant({ fingerprint: OTHER_FINGERPRINT }).claims()
    const inFlight = bench.inFlight(next, { attempt: 2 })
    promised(await owner.complete(), stale(inFlight), 'A late completion does not affect a later attempt.')
    promised(await owner.release(), stale(inFlight), 'A late release does not affect a later attempt.')
  },

  "one answer: after another's completion a former owner gets that answer": async (bench) => {
    const [former, owner] = await formerAndOwner(bench)
    await owner.complete()
    const due = stale(completed(owner, 2))
    promised(await former.complete(OTHER_ANSWER), due, 'complete of a former owner is stale, with the answer.')
    promised(await former.release(), due, 'release of a former owner is stale, with the answer.')
    promised(await former.renew(), due, 'renew of a former owner is stale, with the answer.')
    promised(await bench.look(), completed(owner, 2), 'The answer stays.')
  },

  'one answer: of 20 completions at once, one answer is stored and never changes': async (bench) => {
    const owner = await bench.claimant().claims()
    const answers = Array.from({ length: 20 }, (_, i) => ({ ...OTHER_ANSWER, status: 201 + i }))
    const replies = await Promise.all(answers.map((answer) => owner.complete(answer)))
    promised(
      replies.every((reply) => reply.ok),
      true,
      'A completion that is sent again is confirmed again.',
    )
    const first = await bench.look()
    await owner.complete()
    await owner.release()
    await owner.renew()
    promised(await bench.look(), first, 'Once stored, the answer never changes.')
  },

  'one answer: each retry gets the answer': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.complete()
    for (let i = 0; i < 3; i++) {
      const begun = await bench.claimant().begin()
      promised({ acquired: begun.acquired }, { acquired: false }, 'A completed key is never claimed again.')
      promised(answerTo(begun), SEEN_ANSWER, 'A retry gets the answer.')
    }
  },
})

async function oneOfACrowd(bench: Bench, winner: SeenBegun): Promise<void> {
  const begun = await Promise.all(Array.from({ length: CROWD }, () => bench.claimant().begin()))
  const winners = begun.filter((each) => each.acquired)
  promised(winners, [winner], `Of ${CROWD} begins at once, one acquires.`)
}

async function leaseLeftMs({ store, key }: Bench): Promise<number> {
  const terms = { leaseMs: DAY_MS, retentionMs: DAY_MS, unknownOutcome: 'refuse' } as const
  const begun = await store.begin(key, { token: randomUUID(), scope: 'laws', fingerprint: FINGERPRINT, ...terms })
  return !begun.acquired && begun.record.state === 'in-flight' ? begun.record.leaseRemainingMs : 0
}

async function formerAndOwner(bench: Bench): Promise<[former: Claimant, owner: Claimant]> {
  const former = await lapsed(bench)
  return [former, await bench.claimant().claims()]
}
