import { everywhere, type Law } from '../bench.js'
import { OTHER_FINGERPRINT } from '../claimant.js'
import { promised } from '../seen.js'
import { completed, takenOver } from '../situations.js'

/** Repeatable: a command that is sent twice, or late, has the same effect as one that is sent once, in time. */
export const repeatLaws: readonly Law[] = everywhere({
  'repeatable: a begin whose reply was lost gets the same reply again': async (bench) => {
    const owner = await bench.claimant().claims()
    const first = { acquired: true, attempt: 1, previousOutcome: 'none' }
    promised(await owner.begin(), first, 'A begin that is sent again finds its own token and is the owner.')
    promised(await owner.begin(), first, 'A third begin gets the same reply.')
  },

  'repeatable: one begin that is sent 20 times at once gets the same reply each time': async (bench) => {
    const owner = bench.claimant()
    const begun = await Promise.all(Array.from({ length: 20 }, () => owner.begin()))
    const first = { acquired: true, attempt: 1, previousOutcome: 'none' }
    promised(begun, Array(20).fill(first), 'One token is one claim, however often it is sent.')
    const { acquired } = await bench.claimant().begin()
    promised({ acquired }, { acquired: false }, 'Other tokens do not acquire.')
  },

  'repeatable: a completion whose reply was lost is confirmed again': async (bench) => {
    const owner = await bench.claimant().claims()
    promised(await owner.complete(), { ok: true }, 'The owner completes.')
    promised(await owner.complete(), { ok: true }, 'The same completion, sent again, is confirmed.')
    promised(await bench.look(), completed(owner), 'The repetition changes nothing.')
  },

  'repeatable: a token that completed never claims again': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.complete()
    const refused = { acquired: false, record: completed(owner) }
    promised(await owner.begin(), refused, "A late begin by the owner shows the owner's answer.")
  },

  'repeatable: a begin that is sent again after a failure reports the failure again': async (bench) => {
    await (await bench.claimant().claims()).release()
    const owner = await bench.claimant().claims()
    const again = { acquired: true, attempt: 2, previousOutcome: 'failed' }
    promised(await owner.begin(), again, 'A repeated begin gets the same reply as the first.')
  },

  'repeatable: a begin that is sent again after a takeover reports the unknown outcome again': async (bench) => {
    const owner = await takenOver(bench, bench.longMs)
    const again = { acquired: true, attempt: 2, previousOutcome: 'unknown' }
    promised(await owner.begin(), again, 'A repeated begin gets the same reply as the first.')
  },

  'repeatable: a begin that refuses unknown outcomes still finds its own claim': async (bench) => {
    const owner = await bench.claimant({ unknownOutcome: 'refuse' }).claims({ leaseMs: bench.shortMs })
    await bench.pass()
    const again = { acquired: true, attempt: 1, previousOutcome: 'none' }
    promised(await owner.begin(), again, 'To the owner, the lapse of its own lease is not an unknown outcome.')
  },

  'repeatable: a released token never claims again': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.release()
    const record = { state: 'failed', fingerprint: null, attempt: 1, uncertain: false }
    promised(await owner.begin(), { acquired: false, record }, 'A begin that arrives after its release is refused.')
    const next = { acquired: true, attempt: 2, previousOutcome: 'failed' }
    promised(await bench.claimant().begin(), next, 'The key is free for others.')
  },

  'repeatable: a release whose reply was lost is confirmed again': async (bench) => {
    const owner = await bench.claimant().claims()
    promised(await owner.release(), { ok: true }, 'The owner releases.')
    promised(await owner.release(), { ok: true }, 'The same release, sent again, is confirmed.')
    promised(
      await owner.release({ uncertain: true }),
      { ok: true },
      'A repeated release is confirmed, even if `uncertain` differs.',
    )
    const record = { state: 'failed', fingerprint: null, attempt: 1, uncertain: false }
    promised(await bench.look(), record, 'The repetition changes nothing.')
  },

  'repeatable: the release of an unconfirmed claim, arriving first, fences its begin': async (bench) => {
    const owner = bench.claimant()
    promised(await owner.release({ attempt: 0 }), { ok: true }, 'A release that meets no record writes the tombstone.')
    const record = { state: 'failed', fingerprint: null, attempt: 0, uncertain: false }
    promised(await owner.begin(), { acquired: false, record }, 'The late begin with the same token is fenced.')
    const next = { acquired: true, attempt: 1, previousOutcome: 'none' }
    const corrected = bench.claimant({ fingerprint: OTHER_FINGERPRINT })
    promised(await corrected.begin(), next, 'Nothing ran: the next attempt is the first.')
  },

  'repeatable: the release of an unconfirmed claim that was made frees the key': async (bench) => {
    const owner = await bench.claimant().claims()
    promised(await owner.release({ attempt: 0 }), { ok: true }, 'The token, not the attempt, proves who owns it.')
    const record = { state: 'failed', fingerprint: null, attempt: 1, uncertain: false }
    promised(await bench.look(), record, 'The record keeps its own attempt.')
    const next = { acquired: true, attempt: 2, previousOutcome: 'failed' }
    promised(await bench.claimant().begin(), next, 'The key is free.')
  },

  'repeatable: a restored claim is found by its begin': async (bench) => {
    const owner = bench.claimant()
    await owner.renew({ attempt: 4 })
    const again = { acquired: true, attempt: 4, previousOutcome: 'failed' }
    promised(await owner.begin(), again, 'A claim that renew restored is the claim.')
    const { acquired } = await bench.claimant().begin()
    promised({ acquired }, { acquired: false }, 'Other tokens do not acquire.')
  },
})
