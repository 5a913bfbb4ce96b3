import { Buffer } from 'node:buffer'
import { type Bench, createLawFactory, type Law } from '../bench.js'
import { ANSWER, type Claimant } from '../claimant.js'
import { assertPromise, expectStale, OK } from '../seen.js'
import { claimAndLapse } from '../situations.js'

const stepped = createLawFactory('stepped')

const CHARGED = 'charge done "ch_1"'

export const stepLaws: readonly Law[] = [
  stepped('steps: a takeover is told those that were recorded, with their results', async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: bench.shortMs })
    await charged(owner, { leaseMs: bench.shortMs })
    assertPromise(await owner.step('ship', 'begun', 3, null, { leaseMs: bench.shortMs }), OK, 'A step can be begun.')
    await bench.pass()
    const due = [CHARGED, 'ship begun null']
    assertPromise(await bench.claimant().recorded(), due, 'The next attempt goes on after the steps that are done.')
  }),

  stepped('steps: a begin that is sent again is told them too', async (bench) => {
    const owner = await bench.claimant().claims()
    await charged(owner)
    assertPromise(await owner.recorded(), [CHARGED], 'A repeated begin forgets no step.')
  }),

  stepped('steps: an uncertain failure keeps them, a certain one and a completion drop them', async (bench) => {
    const first = await bench.claimant().claims()
    await charged(first)
    await first.release({ uncertain: true })
    assertPromise(await bench.claimant().recorded(), [CHARGED], 'After an uncertain failure the steps are there.')
    for (const [key, end] of [
      [`${bench.key}:failed`, (owner: Claimant) => owner.release()],
      [`${bench.key}:completed`, (owner: Claimant) => owner.complete(ANSWER, { retentionMs: bench.shortMs })],
    ] as const) {
      const owner = await bench.claimant({ key }).claims()
      await charged(owner)
      await end(owner)
      await bench.pass()
      assertPromise(await bench.claimant({ key }).recorded(), [], 'Steps never survive into another operation.')
    }
  }),

  stepped('steps: what was taken back has never begun, for the next attempt', async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.step('charge', 'begun', 1)
    await owner.step('charge', 'undone', 2)
    await owner.release({ uncertain: true })
    assertPromise(await bench.claimant().recorded(), [], 'A step that was taken back is not told.')
  }),

  stepped('steps: a late command of one owner changes nothing', async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.step('charge', 'begun', 1)
    await owner.step('charge', 'begun', 3)
    assertPromise(await owner.step('charge', 'undone', 2), OK, 'A late command is confirmed.')
    assertPromise(await owner.recorded(), ['charge begun null'], 'A late `undone` takes no newer mark away.')
    await owner.step('charge', 'undone', 5)
    assertPromise(await owner.step('charge', 'begun', 4), OK, 'A late command is confirmed.')
    assertPromise(await owner.recorded(), [], 'A late `begun` begins nothing that was taken back.')
    await owner.step('charge', 'done', 7, '"ch_1"')
    await owner.step('charge', 'begun', 6)
    assertPromise(await owner.recorded(), [CHARGED], 'A late `begun` does not replace a result.')
  }),

  stepped('steps: a result is final', async (bench) => {
    const first = await bench.claimant().claims()
    await charged(first)
    await first.release({ uncertain: true })
    const second = await bench.claimant().claims()
    for (const state of ['begun', 'undone'] as const) {
      assertPromise(await second.step('charge', state, 1), OK, 'A late mark of its token is confirmed.')
      assertPromise(await second.recorded(), [CHARGED], 'It takes no result away.')
    }
    assertPromise(await second.step('charge', 'done', 2, '"ch_2"'), OK, 'So is a late result.')
    assertPromise(await second.recorded(), [CHARGED], 'All attempts go on with the same one.')
  }),

  stepped('steps: the order starts anew with each owner', async (bench) => {
    const first = await bench.claimant().claims()
    await first.step('charge', 'begun', 9)
    await first.release({ uncertain: true })
    const second = await bench.claimant().claims()
    await second.step('charge', 'done', 1, '"ch_1"')
    assertPromise(await second.recorded(), [CHARGED], "An owner's first command for a label always applies.")
    await second.step('ship', 'begun', 5)
    await second.release({ uncertain: true })
    await first.claims()
    await first.release({ uncertain: true })
    await second.claims()
    await second.step('ship', 'undone', 1)
    assertPromise(await second.recorded(), [CHARGED], 'So it does where the same token comes back.')
  }),

  stepped('steps: a command that is sent again equals one', async (bench) => {
    const owner = await bench.claimant().claims()
    await charged(owner)
    assertPromise(await owner.step('charge', 'done', 2, '"ch_1"'), OK, 'A repeated command is confirmed.')
    assertPromise(await owner.recorded(), [CHARGED], 'It changes nothing.')
  }),

  stepped('steps: an owner that was taken over records none', async (bench) => {
    const late = await claimAndLapse(bench)
    const owner = await bench.claimant().claims()
    const { ok } = await late.step('charge', 'done', 1, '"ch_late"')
    assertPromise({ ok }, { ok: false }, "A stale owner's step is refused.")
    assertPromise(await owner.recorded(), [], 'It changes no record that another attempt owns.')
  }),

  ...[false, true].map((uncertain) =>
    stepped(`steps: behind ${uncertain ? 'an uncertain' : 'a certain'} failure each is stale`, async (bench) => {
      const owner = await bench.claimant().claims()
      await owner.release({ uncertain })
      const record = await bench.look()
      for (const state of ['begun', 'done', 'undone'] as const) {
        assertPromise(
          await owner.step('ship', state, 1),
          expectStale(record),
          'An attempt that has failed has no more steps.',
        )
      }
      assertPromise(await bench.look(), record, 'They change nothing.')
      assertPromise(await bench.claimant().recorded(), [], 'The next attempt is not told of them.')
    }),
  ),

  stepped('steps: behind a completion a result is confirmed, and a beginning is stale', async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.complete()
    const late = await bench.claimant({ attempt: 1 }).step('charge', 'done', 1, '"ch_2"')
    assertPromise({ ok: late.ok }, { ok: false }, "So it is for the record's own token only.")
    assertPromise(
      await owner.step('charge', 'done', 2, '"ch_1"'),
      OK,
      'A late result of a completed run changes nothing.',
    )
    const { ok } = await owner.step('ship', 'begun', 3)
    assertPromise({ ok }, { ok: false }, 'After its completion no step begins.')
  }),

  stepped('steps: it renews the lease, and restarts the retention', async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: bench.shortMs, retentionMs: 2 * bench.shortMs })
    await owner.step('charge', 'begun', 1)
    await bench.pass()
    await bench.pass()
    assertPromise(await bench.look(), bench.inFlight(owner), 'A step renews the lease as `renew` does.')
  }),

  stepped('steps: where there is no record, the claim is restored with it, and its owner is told', async (bench) => {
    const owner = bench.claimant({ attempt: 2, uncertain: true })
    assertPromise(
      await owner.restores('charge'),
      true,
      'The reply says `restored`, so that the other steps are sent again.',
    )
    assertPromise(await bench.look(), bench.inFlight(owner, { attempt: 2, uncertain: true }), 'The claim is restored.')
    assertPromise(await owner.recorded(), ['charge begun null'], 'The step is in it.')
  }),

  stepped('steps: a renewal that restores the claim says so, and another does not', async (bench) => {
    const owner = bench.claimant({ attempt: 2 })
    const why = 'The reply says `restored` where there was no record, so that the steps are sent again.'
    assertPromise([await owner.restores(), await owner.restores()], [true, false], why)
  }),

  stepped('steps: after its retention a record is none, for a step too', async (bench) => {
    await bench.claimant().claims({ leaseMs: bench.shortMs, retentionMs: bench.shortMs })
    await bench.pass()
    assertPromise(await bench.claimant().restores('charge'), true, 'Where a record has expired, the claim is restored.')
  }),

  stepped('steps: any bytes and any label survive, and a result that is not kept', async (bench) => {
    const owner = await bench.claimant().claims()
    const label = 'Zahlung é 💶 "1" \\'
    const every = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString('latin1')
    await owner.step(label, 'done', 1, every)
    await owner.step('large', 'done', 2, null)
    await owner.step('empty', 'done', 3, '')
    assertPromise(
      await owner.recorded(),
      [`${label} done ${every}`, 'large done null', 'empty done '],
      'They are told.',
    )
  }),

  stepped('steps: a hundred survive, each under its own label, and a result of 64 KiB', async (bench) => {
    const owner = await bench.claimant().claims()
    const large = 'large '.repeat(10_000).padEnd(65_536, '.')
    const most = ['l'.repeat(99), '__proto__', 'charge', 'Charge', '1', '01', 'e\u0301', '\u00e9']
    const labels = [...most, ...Array.from({ length: 92 }, (_, i) => `${'l'.repeat(96)}:${i + 100}`)]
    for (const [i, label] of labels.entries()) await owner.step(label, 'done', i + 1, i === 0 ? large : `${i}`)
    const due = labels.map((label, i) => `${label} done ${i === 0 ? large : i}`)
    assertPromise(
      (await owner.recorded()).toSorted(),
      due.toSorted(),
      'A label has up to 100 characters, and is unlike others.',
    )
  }),
]

async function charged(owner: Claimant, terms = {}): Promise<void> {
  assertPromise(await owner.step('charge', 'begun', 1, null, terms), OK, 'A step can be begun.')
  assertPromise(await owner.step('charge', 'done', 2, '"ch_1"', terms), OK, 'A step can be done.')
}

// --- what an operator sees of them

const ofOperators = createLawFactory('operable and stepped')

/** What an operator sees of steps, and what a resolution leaves of them. */
export const operatorStepLaws: readonly Law[] = [
  ...(['rerun', null, ANSWER] as const).map((answer) => {
    const as = answer === 'rerun' ? 'to be rerun keeps' : `as ${answer === null ? 'failed' : 'completed'} drops`
    return ofOperators(`resolve: ${as} the steps`, async (bench) => {
      const owner = await bench.claimant().claims()
      await owner.step('charge', 'done', 1, '"ch_1"')
      await owner.step('ship', 'begun', 2)
      await owner.release({ uncertain: true })
      await bench.resolve(1, answer)
      if (answer === 'rerun') {
        const due = ['charge done "ch_1"', 'ship begun null']
        assertPromise(await bench.claimant().recorded(), due, 'The next attempt goes on after the steps that are done.')
      } else {
        assertPromise(await shownSteps(bench), undefined, 'A known outcome has no steps to go on with.')
        if (answer === null) assertPromise(await bench.claimant().recorded(), [], 'The next attempt begins anew.')
      }
    })
  }),

  ofOperators('inspect: shows the labels and states of steps, and no result', async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.step('charge', 'done', 1, '"ch_1"')
    await owner.step('ship', 'begun', 2)
    await owner.step('mail', 'undone', 3)
    const due = [
      { label: 'charge', state: 'done' },
      { label: 'ship', state: 'begun' },
    ]
    assertPromise(await shownSteps(bench), due, 'Results are for the next attempt alone.')
    await owner.release({ uncertain: true })
    assertPromise(await shownSteps(bench), due, 'So it is after a failure.')
  }),
]

/** What only `inspect` shows, with every member. */
async function shownSteps({ store, key }: Bench): Promise<unknown> {
  const record = await store.inspect(key)
  return record && 'steps' in record ? record.steps?.map((step) => ({ ...step })) : undefined
}
