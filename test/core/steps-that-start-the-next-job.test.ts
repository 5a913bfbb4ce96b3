import { queryObjects } from 'node:v8'
import { MemoryStore } from 'once-per-key/memory'
import { runner } from 'once-per-key/run'
import { expect, test } from 'vitest'
import { StepWork } from '../../src/core/run/step.js'

const JOBS = 300

test.each([
  ['while its work runs', (next: () => void) => next()],
  ['later', (next: () => void) => setImmediate(next)],
])('a job that starts the next one in a step, %s, keeps none of those before it', async (_when, start) => {
  const once = runner({ store: new MemoryStore({ maxScopeShare: 1 }), name: 'jobs', onEvent() {} })
  const kept = await new Promise<number>((resolve, reject) => {
    function job(n: number): void {
      if (n === JOBS) resolve(queryObjects(StepWork, { format: 'count' }))
      else
        void once({ scope: 's', key: `${n}`, input: null }, async ({ step }) => {
          await step('next', async () => {
            await new Promise(setImmediate)
            start(() => job(n + 1))
            await new Promise(setImmediate)
          })
        }).catch(reject)
    }
    job(0)
  })
  expect(kept).toBeLessThan(JOBS / 10)
})
