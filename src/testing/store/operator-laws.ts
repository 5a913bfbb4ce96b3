import { randomUUID } from 'node:crypto'
import type { Answer } from '../../core/index.js'
import { type Bench, createLawFactory, type Law } from '../bench.js'
import { ANSWER, LONG_MS, OTHER_ANSWER, OTHER_FINGERPRINT, SEEN_ANSWER } from '../claimant.js'
import {
  assertPromise,
  expectAcquired,
  expectStale,
  failed,
  getAnswer,
  NEW,
  OK,
  refused,
  type SeenRecord,
  toSeenAnswer,
} from '../seen.js'
import {
  assertKeptOut,
  checkUnchanged,
  claimAndLapse,
  completed,
  createSituationLaw,
  failedUncertain,
  type Met,
  SITUATIONS,
  type SituationName,
} from '../situations.js'

const operable = createLawFactory('operable')
const listable = createLawFactory('listable')

/** What can be resolved: an attempt that died or stalled, or a failure that may have had its effect. */
const UNKNOWN: Readonly<Record<SituationName, boolean>> = {
  none: false,
  'in-flight, lease live': false,
  'in-flight, lease lapsed': true,
  'in-flight after a takeover, lease live': false,
  'in-flight after a takeover, lease lapsed': true,
  completed: false,
  'completed, answer not kept': false,
  'failed, certain': false,
  'failed, uncertain': true,
}

const INSPECT_CELLS = Object.entries(SITUATIONS).map(([situation]): Law => {
  const name = `inspect (${situation}): shows the record`
  return createSituationLaw('operable', situation, name, async (bench, met) => {
    assertPromise(await bench.inspect(), met.record, `${name}.`)
    await checkUnchanged(bench, met, name)
  })
})

const OUTCOMES = {
  failed: null,
  completed: ANSWER,
  'completed, answer not kept': { ...ANSWER, body: null },
  'to be rerun': 'rerun',
} as const
type Outcome = keyof typeof OUTCOMES

const RESOLVE_CELLS = Object.entries(UNKNOWN).flatMap(([situation, isUnknown]) =>
  Object.entries(OUTCOMES).map(([as, answer]): Law => {
    const name = `resolve as ${as} (${situation}): ${isUnknown ? 'ok' : 'stale'}`
    return createSituationLaw('operable', situation, name, async (bench, met) => {
      const attempt = attemptOf(met)
      const done = await bench.resolve(attempt, answer)
      if (!isUnknown) return checkStale(bench, met, done, name)
      assertPromise(done, OK, `${name}.`)
      const record = resolved(met, as as Outcome)
      assertPromise(await bench.look(), record, `${name}, as the attempt that was settled.`)
      assertPromise(await met.owner.renew(), expectStale(record), `${name}, and the former owner no longer owns it.`)
      assertPromise(
        await met.owner.complete(OTHER_ANSWER),
        expectStale(record),
        `${name}, and a late answer is fenced.`,
      )
      assertPromise(
        await met.owner.release({ uncertain: true }),
        expectStale(record),
        `${name}, and a late failure is fenced.`,
      )
      assertPromise(await bench.look(), record, `${name}, and none of these changes the record.`)
    })
  }),
)

const OTHER_ATTEMPT_CELLS = Object.keys(UNKNOWN).flatMap((situation) =>
  [-1, 1].map((difference): Law => {
    const name = `resolve (${situation}) of the attempt ${difference < 0 ? 'before' : 'after'}: stale`
    return createSituationLaw('operable', situation, name, async (bench, met) => {
      await checkStale(bench, met, await bench.resolve(attemptOf(met) + difference, ANSWER), name)
    })
  }),
)

const LAWS: readonly Law[] = [
  operable('resolve: as failed frees the key for any fingerprint, with previous outcome failed', async (bench) => {
    await claimAndLapse(bench)
    await bench.resolve(1, null)
    const corrected = bench.claimant({ fingerprint: OTHER_FINGERPRINT, unknownOutcome: 'refuse' })
    assertPromise(
      await corrected.begin(),
      expectAcquired(2, 'failed'),
      'A key resolved as failed is a certain failure.',
    )
  }),

  operable(
    'resolve: a key resolved as completed is never claimed again, and each begin gets the answer',
    async (bench) => {
      const owner = await claimAndLapse(bench)
      await bench.resolve(1, ANSWER)
      const due = refused(completed(owner, 1))
      assertPromise(await bench.claimant().begin(), due, 'A key resolved as completed is completed.')
      assertPromise(await owner.begin(), due, 'The former owner gets the same reply.')
    },
  ),

  operable('resolve: to be rerun lets the next claim go on once, with its fingerprint, and told so', async (bench) => {
    await claimAndLapse(bench)
    await bench.resolve(1, 'rerun')
    assertPromise(await isMarked(bench), true, '`inspect` shows `rerun`.')
    const refuses = { unknownOutcome: 'refuse' } as const
    const other = bench.claimant({ ...refuses, fingerprint: OTHER_FINGERPRINT })
    await assertKeptOut(other, 'The key stays bound to its fingerprint.')
    const next = bench.claimant(refuses)
    assertPromise(
      await next.begin(),
      expectAcquired(2, 'unknown'),
      'It is taken over even by a claim that refuses unknown outcomes, and stays unknown.',
    )
    await next.release({ uncertain: true })
    assertPromise(await isMarked(bench), false, 'The claim clears the mark.')
    await assertKeptOut(bench.claimant(refuses), 'An attempt after it is refused again.')
  }),

  ...eitherWay('resolve: a repetition is confirmed and changes nothing', async (bench, answer) => {
    await claimAndLapse(bench)
    const token = randomUUID()
    assertPromise(await bench.resolve(1, answer, { token }), OK, 'An unknown outcome can be resolved.')
    const record = await bench.look()
    const other = answer === null ? ANSWER : null
    assertPromise(await bench.resolve(1, other, { token }), OK, 'A repetition is confirmed, even with another outcome.')
    assertPromise(await bench.look(), record, 'The repetition changes nothing.')
  }),

  operable('resolve: a repetition after a later attempt changes nothing', async (bench) => {
    await claimAndLapse(bench)
    const token = randomUUID()
    await bench.resolve(1, null, { token })
    const later = await claimAndLapse(bench)
    const record = bench.inFlight(later, { attempt: 2, lease: 'lapsed' })
    const again = await bench.resolve(1, null, { token })
    assertPromise(again, expectStale(record), 'A resolution applies to its own attempt only.')
    assertPromise(await later.renew(), OK, 'The later attempt keeps its owner.')
  }),

  operable('resolve: of 20 operators at once, one resolves', async (bench) => {
    await claimAndLapse(bench)
    const answers = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? ANSWER : null))
    const done = await Promise.all(answers.map((answer) => bench.resolve(1, answer)))
    assertPromise(done.filter(({ ok }) => ok).length, 1, 'The first operator decides.')
    const record = await bench.look()
    for (const one of done)
      if (!one.ok) assertPromise(one.record, record, "The others get the first operator's decision.")
  }),

  operable('resolve: the answer is kept unchanged', async (bench) => {
    await claimAndLapse(bench)
    const headers = [
      ['Link', '</a>; rel="next"'],
      ['Link', 'caf\u00e9'],
    ] as const
    const body = Uint8Array.from({ length: 256 }, (_, i) => i)
    const answer = { status: 203, statusMessage: 'Found out', headers, body }
    await bench.resolve(1, answer)
    assertPromise(
      getAnswer(await bench.inspect()),
      toSeenAnswer(answer),
      'Status, reason, headers and bytes are as the operator gave them.',
    )
  }),

  ...eitherWay('resolve: restarts the retention of the record', (bench, answer) =>
    bench.before(async (key, ms, early, late) => {
      await bench.claimant({ key }).claims({ leaseMs: 1, retentionMs: ms })
      await early()
      const done = await bench.resolve(1, answer, { key })
      return async () => {
        assertPromise(done, OK, 'An unknown outcome can be resolved until its retention ends.')
        await late()
        const state = (await bench.inspect(key))?.state
        assertPromise({ state }, { state: stateOf(answer) }, 'Its retention starts at the resolution.')
      }
    }),
  ),

  ...eitherWay('resolve: never shortens the retention of the record', async (bench, answer) => {
    await claimAndLapse(bench)
    await bench.resolve(1, answer, { retentionMs: bench.shortMs })
    await bench.pass()
    const state = (await bench.inspect())?.state
    assertPromise({ state }, { state: stateOf(answer) }, 'It is kept as long as before the resolution.')
  }),

  ...eitherWay('resolve: after its retention the key is new', (bench, answer) =>
    bench.before(async (key, ms, early, late) => {
      await bench.claimant({ key }).claims({ leaseMs: 1, retentionMs: ms })
      await early()
      const done = await bench.resolve(1, answer, { key, retentionMs: 1 })
      return async () => {
        assertPromise(done, OK, 'An unknown outcome can be resolved until its retention ends.')
        await late()
        assertPromise(await bench.claimant({ key }).begin(), NEW, 'After its retention the key is new.')
      }
    }),
  ),

  operable('inspect: changes neither lease nor retention', (bench) =>
    bench.before(async (key, ms, early, late) => {
      const owner = await bench.claimant({ key }).claims({ leaseMs: 1, retentionMs: ms })
      await early()
      await bench.inspect(key)
      const record = await bench.inspect(key)
      return async () => {
        assertPromise(record, bench.inFlight(owner, { lease: 'lapsed' }), 'A lease lapses although it is inspected.')
        await late()
        assertPromise(await bench.inspect(key), null, 'A retention ends although the record is inspected.')
      }
    }),
  ),
]

export const operatorLaws: readonly Law[] = [...INSPECT_CELLS, ...RESOLVE_CELLS, ...OTHER_ATTEMPT_CELLS, ...LAWS]

async function isMarked({ store, key }: Bench): Promise<boolean> {
  const record = await store.inspect(key)
  return record?.state === 'failed' && record.rerun === true
}

/** The same law for both outcomes: an answer to keep, or none. */
function eitherWay(name: string, check: (bench: Bench, answer: Answer | null) => Promise<void>): Law[] {
  return [ANSWER, null].map((answer) => operable(`${name} (${stateOf(answer)})`, (bench) => check(bench, answer)))
}

function stateOf(answer: Answer | null): string {
  return answer === null ? 'failed' : 'completed'
}

function attemptOf({ record }: Met): number {
  return record?.attempt ?? 1
}

function resolved(met: Met, as: Outcome): SeenRecord {
  const attempt = attemptOf(met)
  if (as === 'failed') return failed(attempt)
  if (as === 'to be rerun') return failedUncertain(met.owner, attempt)
  const answer = as === 'completed' ? SEEN_ANSWER : { ...SEEN_ANSWER, body: null }
  return { ...completed(met.owner, attempt), answer }
}

async function checkStale(bench: Bench, met: Met, done: unknown, name: string): Promise<void> {
  assertPromise(done, expectStale(met.record), `${name}, and shows the current record.`)
  await checkUnchanged(bench, met, name)
}

/** The retention of the records by default. */
const RETENTION_MS = 2 * LONG_MS

const LIST_CELLS = Object.entries(UNKNOWN).map(([situation, isUnknown]): Law => {
  const name = `list (${situation}): ${isUnknown ? 'shows the record' : 'skips it'}`
  return createSituationLaw('listable', situation, name, async (bench, met) => {
    const found = await bench.list()
    const shown = found.map(({ record }) => record)
    assertPromise(shown, isUnknown ? [met.record] : [], `${name}, since its outcome is ${isUnknown ? 'un' : ''}known.`)
    await checkUnchanged(bench, met, name)
  })
})

const LISTED_LAWS: readonly Law[] = [
  listable('list: a walk lists all of them, and ends', async (bench) => {
    const keys = Array.from({ length: 50 }, (_, i) => `${bench.key}:${i}`)
    await Promise.all(keys.map((key) => lost(bench, key)))
    const found = (await bench.list(keys)).map(({ key }) => key)
    assertPromise(
      [...new Set(found)].toSorted(),
      keys.toSorted(),
      'A record that exists during the whole walk is listed.',
    )
  }),

  listable('list: shows the key unchanged', async (bench) => {
    const keys = ['a%3Ab:c', 'webhook:a:b', "it's*[a]?", '%C3%A9:%20'].map((end) => `${bench.key}:${end}`)
    await Promise.all(keys.map((key) => lost(bench, key)))
    const found = (await bench.list(keys)).map(({ key }) => key)
    assertPromise([...new Set(found)].toSorted(), keys.toSorted(), 'A storage key is opaque.')
  }),

  listable('list: shows the rest of the retention', async (bench) => {
    await lost(bench, bench.key)
    assertFullRetention(await bench.list())
  }),

  listable('list: skips records that were resolved or claimed again', async (bench) => {
    const keys = ['resolved', 'claimed'].map((end) => `${bench.key}:${end}`) as [string, string]
    await Promise.all(keys.map((key) => lost(bench, key)))
    await bench.resolve(1, null, { key: keys[0] })
    await bench.claimant({ key: keys[1] }).claims()
    assertPromise(await bench.list(keys), [], 'Their outcome is known, or an attempt is running.')
  }),

  listable('list: skips expired records', (bench) =>
    bench.before(async (key, ms, early, late) => {
      await bench.claimant({ key }).claims({ leaseMs: 1, retentionMs: ms })
      await early()
      const found = await bench.list([key])
      return async () => {
        assertPromise(found.length > 0, true, 'Until its retention ends, it is listed.')
        await late()
        assertPromise(await bench.list([key]), [], 'After its retention there is no record.')
      }
    }),
  ),
]

export const listLaws: readonly Law[] = [...LIST_CELLS, ...LISTED_LAWS]

/** The retention of a record with the default terms, as a walk shows it. */
export function assertFullRetention([found]: readonly { readonly retentionRemainingMs: number }[]): void {
  const leftMs = found?.retentionRemainingMs ?? 0
  const isSo = leftMs > RETENTION_MS / 2 && leftMs <= RETENTION_MS
  const why = `The record was just written, so nearly all of its retention is left; seen: ${leftMs} ms of ${RETENTION_MS}.`
  assertPromise({ isSo }, { isSo: true }, why)
}

/** A first attempt that failed, and may have had its effect. */
async function lost(bench: Bench, key: string): Promise<void> {
  const owner = await bench.claimant({ key }).claims()
  assertPromise(await owner.release({ uncertain: true }), OK, 'The owner can release.')
}
