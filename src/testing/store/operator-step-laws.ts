import { type Bench, type Law, lawFor } from '../bench.js'
import { ANSWER } from '../claimant.js'
import { promised } from '../seen.js'

const ofSteps = lawFor('operable and stepped')

/** What an operator sees of steps, and what a resolution leaves of them. */
export const operatorStepLaws: readonly Law[] = [
  ...(['rerun', null, ANSWER] as const).map((answer) => {
    const as = answer === 'rerun' ? 'to be rerun keeps' : `as ${answer === null ? 'failed' : 'completed'} drops`
    return ofSteps(`resolve: ${as} the steps`, async (bench) => {
      const owner = await bench.claimant().claims()
      await owner.step('charge', 'done', 1, '"ch_1"')
      await owner.step('ship', 'begun', 2)
      await owner.release({ uncertain: true })
      await bench.resolve(1, answer)
      if (answer === 'rerun') {
        const due = ['charge done "ch_1"', 'ship begun null']
        promised(await bench.claimant().recorded(), due, 'The next attempt goes on after the steps that are done.')
      } else {
        promised(await shownSteps(bench), undefined, 'A known outcome has no steps to go on with.')
        if (answer === null) promised(await bench.claimant().recorded(), [], 'The next attempt begins anew.')
      }
    })
  }),

  ofSteps('inspect: shows the labels and states of steps, and no result', async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.step('charge', 'done', 1, '"ch_1"')
    await owner.step('ship', 'begun', 2)
    await owner.step('mail', 'undone', 3)
    const due = [
      { label: 'charge', state: 'done' },
      { label: 'ship', state: 'begun' },
    ]
    promised(await shownSteps(bench), due, 'Results are for the next attempt alone.')
    await owner.release({ uncertain: true })
    promised(await shownSteps(bench), due, 'So it is after a failure.')
  }),
]

/** What only `inspect` shows, with every member. */
async function shownSteps({ store, key }: Bench): Promise<unknown> {
  const record = await store.inspect?.(key)
  return record && 'steps' in record ? record.steps?.map((step) => ({ ...step })) : undefined
}
