import type { Forgetting } from '../../core/index.js'
import { type Bench, createLawFactory, type Law } from '../bench.js'
import { ANSWER, OTHER_FINGERPRINT } from '../claimant.js'
import { assertPromise, expectStale, NEW, OK, refused, type SeenAnswer, type SeenRecord } from '../seen.js'
import {
  checkUnchanged,
  createSituationLaw,
  type Met,
  repeatEnd,
  SITUATIONS,
  type SituationName,
} from '../situations.js'
import { assertFullRetention } from './operator-laws.js'

const forgetful = createLawFactory('forgetful')

/** What can be forgotten: an operation whose outcome is known. */
const SETTLED: Readonly<Record<SituationName, boolean>> = {
  none: false,
  'in-flight, lease live': false,
  'in-flight, lease lapsed': false,
  'in-flight after a takeover, lease live': false,
  'in-flight after a takeover, lease lapsed': false,
  completed: true,
  'completed, answer not kept': true,
  'failed, certain': true,
  'failed, uncertain': false,
}

const FORGOTTEN: SeenAnswer = { status: 200, statusMessage: '', headers: [], body: null }

const FORGET_CELLS = Object.entries(SETTLED).flatMap(([situation, isSettled]) =>
  [false, true].map((removes): Law => {
    const name = `forget${removes ? ', removing' : ''} (${situation}): ${isSettled ? 'ok' : 'stale'}`
    return createSituationLaw('forgetful', situation, name, async (bench, met) => {
      const done = await bench.forget(lookedAt(met, removes))
      if (!isSettled) return checkStale(bench, met, done, name)
      assertPromise(done, OK, `${name}.`)
      if (removes) return checkNew(bench, name)
      const record = forgotten(met.record)
      assertPromise(await bench.inspect(), record, `${name}, and only its answer is gone.`)
      assertPromise(await repeatEnd(met), OK, `${name}, and the last owner still owns it.`)
      assertPromise(await bench.forget(lookedAt(met, removes)), OK, `${name}, and it may be sent twice.`)
      assertPromise(await bench.inspect(), record, `${name}, and none of these changes the record.`)
    })
  }),
)

/** Of each settled record, what another one than was looked at differs in. */
const OTHERS: readonly Partial<Forgetting>[] = [{ attempt: 2 }, { fingerprint: OTHER_FINGERPRINT }, { state: 'failed' }]

const OTHER_RECORD_CELLS = OTHERS.flatMap((other) =>
  [false, true].map((removes): Law => {
    const name = `forget${removes ? ', removing' : ''} (completed) of another ${Object.keys(other)[0]}: stale`
    return forgetful(name, async (bench) => {
      const met = await SITUATIONS.completed(bench)
      await checkStale(bench, met, await bench.forget({ ...lookedAt(met, removes), ...other }), name)
    })
  }),
)

const LIST_CELLS = Object.keys(SETTLED).map((situation): Law => {
  const name = `listScope (${situation}): ${situation === 'none' ? 'lists nothing' : 'shows the record without its answer'}`
  return forgetful(name, async (bench) => {
    const met = await SITUATIONS[situation as SituationName](within(bench, 'one'))
    const shown = (await bench.listScope()).map(({ record }) => record)
    assertPromise(shown, met.record === null ? [] : [unanswered(met.record)], `${name}.`)
    assertPromise(await bench.inspect(`${bench.key}:one`), met.record, `${name}, and changes nothing.`)
  })
})

const LAWS: readonly Law[] = [
  forgetful('forget: a forgotten key is never claimed again', async (bench) => {
    const met = await SITUATIONS.completed(bench)
    await bench.forget(lookedAt(met, false))
    const due = refused(forgotten(met.record))
    assertPromise(await bench.claimant().begin(), due, 'Its answer is not kept, and the operation never runs again.')
  }),

  forgetful('forget: keeps the rest of the retention', (bench) =>
    bench.before(async (key, ms, early, late) => {
      const owner = await bench.claimant({ key }).claims({ retentionMs: ms })
      await owner.complete(ANSWER, { retentionMs: ms })
      await early()
      const { fingerprint } = owner
      const done = await bench.forget({ state: 'completed', attempt: 1, fingerprint, removes: false }, key)
      return async () => {
        assertPromise(done, OK, 'Until its retention ends, its answer can be forgotten.')
        await late()
        assertPromise(await bench.inspect(key), null, 'Its retention ends as if nothing had been forgotten.')
      }
    }),
  ),

  forgetful('forget: does not shorten the retention', async (bench) => {
    const met = await SITUATIONS.completed(bench)
    await bench.forget(lookedAt(met, false))
    await bench.pass()
    assertPromise(await bench.inspect(), forgotten(met.record), 'The key stays used.')
  }),

  forgetful('listScope: a walk lists all of a scope, and no other', async (bench) => {
    const scope = `${bench.key}:it's*[a]?%3A`
    const keys = Array.from({ length: 50 }, (_, i) => `${scope}:%C3%A9${i}`)
    await Promise.all([...keys, `${scope}x:1`, `${bench.key}:1`].map((key) => bench.claimant({ key }).claims()))
    const found = (await bench.listScope(scope)).map(({ key }) => key)
    assertPromise([...new Set(found)].toSorted(), keys.toSorted(), 'These are the keys that begin with it and a colon.')
  }),

  forgetful('listScope: shows the rest of the retention', async (bench) => {
    await bench.claimant({ key: `${bench.key}:one` }).claims()
    assertFullRetention(await bench.listScope())
  }),

  forgetful('listScope: skips expired records', async (bench) => {
    const owner = await bench.claimant({ key: `${bench.key}:one` }).claims()
    await owner.complete(ANSWER, { retentionMs: bench.shortMs })
    await bench.pass()
    assertPromise(await bench.listScope(), [], 'After its retention there is no record.')
  }),

  forgetful('listScope: shows the answer of which nothing is kept', async (bench) => {
    const met = await SITUATIONS.completed(within(bench, 'one'))
    await bench.forget(lookedAt(met, false), `${bench.key}:one`)
    const [found] = await bench.listScope()
    assertPromise(found?.record, forgotten(met.record), 'So whoever repeats it sees that nothing is left to forget.')
  }),
]

export const forgetLaws: readonly Law[] = [...FORGET_CELLS, ...OTHER_RECORD_CELLS, ...LIST_CELLS, ...LAWS]

/** The same bench, with a key within its scope. */
function within(bench: Bench, name: string): Bench {
  const key = `${bench.key}:${name}`
  return { ...bench, claimant: (terms) => bench.claimant({ key, ...terms }) }
}

function lookedAt({ record }: Met, removes: boolean): Forgetting {
  const { attempt = 1, fingerprint = null } = record ?? {}
  return { state: record?.state === 'failed' ? 'failed' : 'completed', attempt, fingerprint, removes }
}

function forgotten(record: SeenRecord | null): SeenRecord | null {
  return record?.state === 'completed' ? { ...record, answer: FORGOTTEN } : record
}

function unanswered(record: SeenRecord): SeenRecord {
  return record.state === 'completed' ? { ...record, answer: null } : record
}

async function checkStale(bench: Bench, met: Met, done: unknown, name: string): Promise<void> {
  const shown = met.record && unanswered(met.record)
  assertPromise(done, expectStale(shown), `${name}, and shows the current record, without its answer.`)
  await checkUnchanged(bench, met, name)
}

async function checkNew(bench: Bench, name: string): Promise<void> {
  assertPromise(await bench.inspect(), null, `${name}, and there is no record.`)
  assertPromise(await bench.claimant().begin(), NEW, `${name}, and the key is new.`)
}
