import { type Bench, createLaws, DAY_MS, type Law } from '../bench.js'
import { type Claimant, OTHER_ANSWER, OTHER_FINGERPRINT } from '../claimant.js'
import { assertPromise, expectAcquired, NEW, OK, refused } from '../seen.js'
import { completed } from '../situations.js'

/** Retention: how long a record is kept, and that it is gone afterwards. */
export const retentionLaws: readonly Law[] = createLaws({
  'retention: a completed record is gone when its retention ends': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.complete(undefined, { retentionMs: bench.shortMs })
    await bench.pass()
    const other = bench.claimant({ fingerprint: OTHER_FINGERPRINT })
    assertPromise(await other.begin(), NEW, 'After its retention the key is new, for any fingerprint.')
  },

  'retention: a completed record is kept until its retention ends': (bench) =>
    bench.before(async (key, ms, early) => {
      const owner = await bench.claimant({ key }).claims()
      await owner.complete(undefined, { retentionMs: ms })
      await early()
      const begun = await bench.claimant({ key }).begin()
      return () => assertPromise(begun, refused(completed(owner)), 'Within its retention the answer is kept.')
    }),

  'retention: counts from the completion': async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: bench.shortMs, retentionMs: 2 * bench.shortMs })
    await owner.complete(undefined, { retentionMs: bench.longMs })
    await bench.pass()
    await bench.pass()
    assertPromise(await bench.look(), completed(owner), 'The completion says how long its answer is kept.')
  },

  'retention: a completed record is kept for all of 30 days': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.complete(undefined, { retentionMs: 30 * DAY_MS })
    await bench.leap(29 * DAY_MS)
    assertPromise(await bench.look(), completed(owner), 'A retention may be longer than 2 ** 31 milliseconds.')
  },

  'retention: a refused or stale command does not extend a completed record': (bench) =>
    keptNoLonger(bench, (owner, ms) => owner.complete(undefined, { retentionMs: ms })),

  'retention: a completion that is sent again does not extend it': (bench) =>
    bench.before(async (key, ms, early, late) => {
      const owner = await bench.claimant({ key }).claims()
      await owner.complete(undefined, { retentionMs: ms })
      await early()
      const again = await owner.complete(OTHER_ANSWER, { retentionMs: bench.longMs })
      return async () => {
        assertPromise(again, OK, 'A completion that is sent again is confirmed.')
        await late()
        const begun = await bench.claimant({ key }).begin()
        assertPromise(begun, NEW, 'A completion that is sent again changes nothing, including the retention.')
      }
    }),

  'retention: an uncertain failure is gone when its retention ends': async (bench) => {
    await (await bench.claimant().claims()).release({ uncertain: true, retentionMs: bench.shortMs })
    await bench.pass()
    assertPromise(
      await bench.claimant({ fingerprint: OTHER_FINGERPRINT }).begin(),
      NEW,
      'After its retention it is new.',
    )
  },

  'retention: an uncertain failure is kept for its retention, not for failedMs': async (bench) => {
    await (await bench.claimant().claims()).release({ uncertain: true, failedMs: bench.shortMs })
    await bench.pass()
    assertPromise(
      await bench.claimant().begin(),
      expectAcquired(2, 'unknown'),
      'An unknown outcome is kept for retentionMs.',
    )
  },

  'retention: a certain failure is gone after failedMs': async (bench) => {
    await (await bench.claimant().claims()).release({ failedMs: bench.shortMs })
    await bench.pass()
    assertPromise(await bench.claimant().begin(), NEW, 'After failedMs the key is new.')
  },

  'retention: a certain failure is kept for failedMs, not for its retention': async (bench) => {
    await (await bench.claimant().claims()).release({ retentionMs: bench.shortMs })
    await bench.pass()
    assertPromise(
      await bench.claimant().begin(),
      expectAcquired(2, 'failed'),
      'A certain failure is kept for failedMs.',
    )
  },

  'retention: a claim behind a certain failure has its own': (bench) =>
    bench.before(async (key, ms, early, late) => {
      await (await bench.claimant({ key }).claims()).release({ failedMs: ms })
      await early()
      const next = await bench.claimant({ key }).claims()
      return async () => {
        await late()
        assertPromise(
          await bench.look(key),
          bench.inFlight(next, { attempt: 2 }),
          'A claim is kept for its own retentionMs.',
        )
      }
    }),

  'retention: a certain failure is kept until failedMs are over': (bench) =>
    bench.before(async (key, ms, early) => {
      const owner = await bench.claimant({ key }).claims()
      await owner.release({ failedMs: ms })
      await early()
      const begun = await owner.begin()
      return () =>
        assertPromise(
          { acquired: begun.acquired },
          { acquired: false },
          'Within failedMs the released token is fenced.',
        )
    }),

  'retention: a claim, and a failure of either kind, is kept for all of 30 days': async (bench) => {
    const terms = { leaseMs: bench.shortMs, retentionMs: 30 * DAY_MS, failedMs: 30 * DAY_MS }
    const keys = ['claim', 'certain', 'uncertain'].map((kind) => `${bench.key}:${kind}`)
    const owners = await Promise.all(keys.map((key) => bench.claimant({ key, ...terms }).claims()))
    await owners[1]?.release()
    await owners[2]?.release({ uncertain: true })
    await bench.leap(29 * DAY_MS)
    const begun = await Promise.all(keys.map((key) => bench.claimant({ key }).begin()))
    const due = ['unknown', 'failed', 'unknown'].map((outcome) => expectAcquired(2, outcome))
    assertPromise(begun, due, 'A retention, or failedMs, may be longer than 2 ** 31 milliseconds.')
  },

  'retention: a refused or stale command does not extend a claim': (bench) =>
    keptNoLonger(bench, (owner, ms) => owner.begin({ leaseMs: 1, retentionMs: ms })),

  'retention: a refused or stale command does not extend a certain failure': (bench) =>
    keptNoLonger(bench, (owner, ms) => owner.release({ failedMs: ms })),

  'retention: a refused or stale command does not extend an uncertain failure': (bench) =>
    keptNoLonger(bench, (owner, ms) => owner.release({ uncertain: true, retentionMs: ms })),

  'retention: a claim whose owner died is gone when its retention ends, not with its lease': async (bench) => {
    const { shortMs } = bench
    await bench.claimant().claims({ leaseMs: shortMs, retentionMs: bench.longMs })
    await bench.pass()
    const taker = bench.claimant({ leaseMs: shortMs, retentionMs: shortMs })
    assertPromise(await taker.begin(), expectAcquired(2, 'unknown'), 'A lapsed key is never new.')
    await bench.pass()
    assertPromise(await bench.claimant().begin(), NEW, 'After its retention the key is new.')
  },

  'retention: renew restarts the retention of a claim': async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: bench.shortMs, retentionMs: 2 * bench.shortMs })
    await owner.renew({ leaseMs: bench.shortMs, retentionMs: bench.longMs })
    await bench.pass()
    await bench.pass()
    assertPromise(
      await bench.look(),
      bench.inFlight(owner, { lease: 'lapsed' }),
      'The retention of a renewed claim starts at the renewal.',
    )
  },

  'retention: a begin that is sent again restarts the retention': async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: bench.shortMs, retentionMs: 2 * bench.shortMs })
    await owner.begin({ leaseMs: bench.shortMs })
    await bench.pass()
    await bench.pass()
    assertPromise(
      await bench.look(),
      bench.inFlight(owner, { lease: 'lapsed' }),
      'The retention of a repeated begin starts at the repetition.',
    )
  },

  'retention: a release that is sent again does not extend the failure': (bench) =>
    bench.before(async (key, ms, early, late) => {
      const owner = await bench.claimant({ key }).claims()
      await owner.release({ failedMs: ms })
      await early()
      await owner.release()
      return async () => {
        await late()
        const begun = await bench.claimant({ key }).begin()
        assertPromise(begun, NEW, 'A release that is sent again changes nothing, including failedMs.')
      }
    }),

  'retention: after its end a late completion writes its answer': async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: bench.shortMs, retentionMs: bench.shortMs })
    await bench.pass()
    assertPromise(await owner.complete(), OK, 'If there is no record, a completion writes it.')
    assertPromise(await bench.look(), completed(owner), 'Retries get the answer of the late completion.')
  },
})

/** The retention starts at the command that last wrote the record, not at the last command that was refused. */
function keptNoLonger(bench: Bench, write: (owner: Claimant, ms: number) => Promise<unknown>): Promise<void> {
  return bench.before(async (key, ms, early, late) => {
    const owner = await bench.claimant({ key }).claims()
    const stranger = bench.claimant({ key, fingerprint: OTHER_FINGERPRINT })
    await write(owner, ms)
    await early()
    const before = await stranger.renew()
    await stranger.complete(OTHER_ANSWER)
    await stranger.release()
    // After a record has ended, its owner's commands are the refused ones; before that, those of others.
    const hasEnded = !before.ok && before.record?.state !== 'in-flight'
    await (hasEnded ? owner : stranger).begin()
    const after = await stranger.renew()
    return async () => {
      assertPromise([before.ok, after], [false, before], 'A refused or stale command changes nothing.')
      await late()
      assertPromise(
        await bench.claimant({ key }).begin(),
        NEW,
        'The retention starts at the command that last wrote the record.',
      )
    }
  })
}
