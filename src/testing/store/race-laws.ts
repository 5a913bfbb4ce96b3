import { isDeepStrictEqual } from 'node:util'
import { type Bench, createLaws, type Law } from '../bench.js'
import { type Claimant, OTHER_ANSWER, OTHER_FINGERPRINT } from '../claimant.js'
import { assertPromise, expectAcquired, failed, NEW, OK, refused } from '../seen.js'
import { assertKeptOut, completed, takeOverLapsed } from '../situations.js'

/** The participants on one key: its owner, which claimed first; another claimant; an operator. */
interface Cast {
  readonly bench: Bench
  readonly key: string
  readonly owner: Claimant
  readonly next: Claimant
}

const SENDERS = {
  renew: ({ owner }) => owner.renew(),
  complete: ({ owner }) => owner.complete(),
  release: ({ owner }) => owner.release(),
  'release as uncertain': ({ owner }) => owner.release({ uncertain: true }),
  step: ({ owner }) => owner.step('charge', 'done', 2, '"ch_1"'),
  'another step': ({ owner }) => owner.step('ship', 'begun', 3),
  'begin again': ({ owner }) => owner.begin(),
  "another's begin": ({ next }) => next.begin(),
  "another's renew": ({ next }) => next.renew(),
  "another's complete": ({ next }) => next.complete(OTHER_ANSWER),
  "another's release": ({ next }) => next.release(),
  inspect: ({ bench, key }) => bench.inspect(key),
  forget: ({ bench, key, owner: { fingerprint } }) =>
    bench.forget({ state: 'completed', attempt: 1, fingerprint, removes: false }, key),
  'forget, removing': ({ bench, key }) =>
    bench.forget({ state: 'failed', attempt: 1, fingerprint: null, removes: true }, key),
  'resolve as failed': ({ bench, key }) => bench.resolve(1, null, { key }),
  'resolve as completed': ({ bench, key }) => bench.resolve(1, OTHER_ANSWER, { key }),
} satisfies Record<string, (cast: Cast) => Promise<unknown>>

type Sender = keyof typeof SENDERS

const FROM_ATTEMPTS = ['renew', 'complete', 'release', 'begin again', "another's begin"] as const

const MET = {
  none: async () => {},
  'in-flight, lease live': (owner) => owner.claims(),
  'in-flight, lease lapsed': (owner, { shortMs }) => owner.claims({ leaseMs: shortMs }),
  expired: (owner, { shortMs }) => owner.claims({ leaseMs: shortMs, retentionMs: shortMs }),
  completed: async (owner) => (await owner.claims()).complete(),
  'failed, certain': async (owner) => (await owner.claims()).release(),
  'failed, uncertain': async (owner) => (await owner.claims()).release({ uncertain: true }),
} satisfies Record<string, (owner: Claimant, bench: Bench) => Promise<unknown>>

type Situation = keyof typeof MET

const RACES: readonly [met: Situation, one: Sender, others: readonly Sender[]][] = [
  ['none', "another's begin", ['renew', 'complete', 'release']],
  ['in-flight, lease live', 'renew', ['complete', 'release']],
  ['in-flight, lease live', 'release', ['complete', "another's begin"]],
  ['in-flight, lease live', 'begin again', ['complete', 'release']],
  ['in-flight, lease lapsed', "another's begin", ['renew', 'complete', 'release', 'begin again']],
  ['in-flight, lease lapsed', 'resolve as failed', FROM_ATTEMPTS],
  ['in-flight, lease lapsed', 'resolve as completed', FROM_ATTEMPTS],
  ['expired', "another's begin", ['renew', 'complete', 'release', 'begin again']],
  ['failed, certain', 'release', ["another's begin"]],
  ['failed, uncertain', 'release', ["another's begin"]],
  // What is stale, or only looks, must not write back what it has read either.
  ['in-flight, lease live', "another's renew", ['complete', 'release']],
  ['in-flight, lease live', "another's complete", ['complete', 'release']],
  ['in-flight, lease live', "another's release", ['complete', 'release']],
  ['in-flight, lease live', 'inspect', ['complete', 'release']],
  ['in-flight, lease live', 'forget', ['complete', 'release']],
  ['completed', 'forget', ['complete']],
  ['failed, certain', 'forget, removing', ["another's begin"]],
  ['none', "another's begin", ['step']],
  ['in-flight, lease live', 'step', ['another step', 'renew', 'complete', 'release as uncertain', 'begin again']],
  ['in-flight, lease lapsed', "another's begin", ['step']],
  ['failed, uncertain', 'resolve as failed', ["another's begin"]],
  ['failed, uncertain', 'resolve as completed', ["another's begin"]],
]

/** Each command is one atomic step: two commands sent at once have the same result as in one of the two orders. */
export const raceLaws: readonly Law[] = RACES.flatMap(([met, one, others]) =>
  others.map((other): Law => {
    const name = `atomic (${met}): ${one} and ${other} at once have the result of one order`
    return { name, holds: holdsOf([one, other]), check: (bench) => checkRace(bench, met, [one, other], name) }
  }),
)

type Send = () => Promise<unknown>
type Way = (one: Send, other: Send) => Promise<readonly [one: unknown, other: unknown]>

async function checkRace(bench: Bench, met: Situation, names: readonly [Sender, Sender], name: string): Promise<void> {
  const ways = [...IN_TURN, ...waysAtOnce(bench)]
  const casts = await Promise.all(ways.map((_, i) => castOn(bench, `${bench.key}:${i}`, met)))
  if (met === 'in-flight, lease lapsed' || met === 'expired') await bench.pass()
  const [inOrder, turnedRound, ...atOnce] = await Promise.all(
    ways.map((way, i) => seenAfter(casts[i] as Cast, names, way)),
  )
  for (const seen of atOnce) {
    const due = [inOrder, turnedRound].find((each) => isDeepStrictEqual(each, seen))
    assertPromise(seen, due ?? { either: inOrder, or: turnedRound }, `${name}.`)
  }
}

async function castOn(bench: Bench, key: string, met: Situation): Promise<Cast> {
  const owner = bench.claimant({ key, attempt: 1 })
  await MET[met](owner, bench)
  return { bench, key, owner, next: bench.claimant({ key }) }
}

/** The replies, the resulting record, who owns it, and what the next to claim it is told. */
async function seenAfter(cast: Cast, [one, other]: readonly [Sender, Sender], way: Way): Promise<unknown> {
  const replies = await way(
    () => SENDERS[one](cast),
    () => SENDERS[other](cast),
  )
  const { bench, key, owner, next } = cast
  const after = { record: await bench.look(key), owner: await owner.renew(), next: await next.renew() }
  return { replies, ...after, told: [await owner.begin(), await next.begin()] }
}

const IN_TURN: readonly Way[] = [
  async (one, other) => [await one(), await other()],
  async (one, other) => {
    const last = await other()
    return [await one(), last]
  },
]

/** Both orders, with different lags for the second command: when two commands overlap depends on the store. */
function waysAtOnce(bench: Bench): Way[] {
  return LAGS.flatMap(({ ticks, turns }): Way[] => {
    async function later(send: Send): Promise<unknown> {
      for (let i = 0; i < ticks; i++) await null
      for (let i = 0; i < turns; i++) await bench.turn()
      return send()
    }
    return [
      (one, other) => Promise.all([one(), later(other)]),
      async (one, other) => {
        const [last, first] = await Promise.all([other(), later(one)])
        return [first, last]
      },
    ]
  })
}

const LAGS = [
  ...Array.from({ length: 5 }, (_, ticks) => ({ ticks, turns: 0 })),
  ...[1, 3].map((turns) => ({ ticks: 0, turns })),
]

function holdsOf(senders: readonly Sender[]): Law['holds'] {
  const [one = ''] = senders
  if (senders.includes('step')) return 'stepped'
  if (one.startsWith('forget')) return 'forgetful'
  return /^(resolve|inspect)/.test(one) ? 'operable' : 'everywhere'
}

// --- one command, sent twice or late

/** Repeatable: a command that is sent twice, or late, has the same effect as one that is sent once, in time. */
export const repeatLaws: readonly Law[] = createLaws({
  'repeatable: a begin whose reply was lost gets the same reply again': async (bench) => {
    const owner = await bench.claimant().claims()
    assertPromise(await owner.begin(), NEW, 'A begin that is sent again finds its own token and is the owner.')
    assertPromise(await owner.begin(), NEW, 'A third begin gets the same reply.')
  },

  'repeatable: one begin that is sent 20 times at once gets the same reply each time': async (bench) => {
    const owner = bench.claimant()
    const begun = await Promise.all(Array.from({ length: 20 }, () => owner.begin()))
    assertPromise(begun, Array(20).fill(NEW), 'One token is one claim, however often it is sent.')
    await assertKeptOut(bench.claimant(), 'Other tokens do not acquire.')
  },

  'repeatable: a completion whose reply was lost is confirmed again': async (bench) => {
    const owner = await bench.claimant().claims()
    assertPromise(await owner.complete(), OK, 'The owner completes.')
    assertPromise(await owner.complete(), OK, 'The same completion, sent again, is confirmed.')
    assertPromise(await bench.look(), completed(owner), 'The repetition changes nothing.')
  },

  'repeatable: a token that completed never claims again': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.complete()
    assertPromise(await owner.begin(), refused(completed(owner)), "A late begin by the owner shows the owner's answer.")
  },

  'repeatable: a begin that is sent again after a failure reports the failure again': async (bench) => {
    await (await bench.claimant().claims()).release()
    const owner = await bench.claimant().claims()
    assertPromise(
      await owner.begin(),
      expectAcquired(2, 'failed'),
      'A repeated begin gets the same reply as the first.',
    )
  },

  'repeatable: a begin that is sent again after a takeover reports the unknown outcome again': async (bench) => {
    const owner = await takeOverLapsed(bench, bench.longMs)
    assertPromise(
      await owner.begin(),
      expectAcquired(2, 'unknown'),
      'A repeated begin gets the same reply as the first.',
    )
  },

  'repeatable: a begin that refuses unknown outcomes still finds its own claim': async (bench) => {
    const owner = await bench.claimant({ unknownOutcome: 'refuse' }).claims({ leaseMs: bench.shortMs })
    await bench.pass()
    assertPromise(await owner.begin(), NEW, 'To the owner, the lapse of its own lease is not an unknown outcome.')
  },

  'repeatable: a released token never claims again': async (bench) => {
    const owner = await bench.claimant().claims()
    await owner.release()
    assertPromise(await owner.begin(), refused(failed()), 'A begin that arrives after its release is refused.')
    assertPromise(await bench.claimant().begin(), expectAcquired(2, 'failed'), 'The key is free for others.')
  },

  'repeatable: a release whose reply was lost is confirmed again': async (bench) => {
    const owner = await bench.claimant().claims()
    assertPromise(await owner.release(), OK, 'The owner releases.')
    assertPromise(await owner.release(), OK, 'The same release, sent again, is confirmed.')
    assertPromise(
      await owner.release({ uncertain: true }),
      OK,
      'A repeated release is confirmed, even if `uncertain` differs.',
    )
    assertPromise(await bench.look(), failed(), 'The repetition changes nothing.')
  },

  'repeatable: the release of an unconfirmed claim, arriving first, fences its begin': async (bench) => {
    const owner = bench.claimant()
    assertPromise(await owner.release({ attempt: 0 }), OK, 'A release that meets no record writes the tombstone.')
    assertPromise(await owner.begin(), refused(failed(0)), 'The late begin with the same token is fenced.')
    const corrected = bench.claimant({ fingerprint: OTHER_FINGERPRINT })
    assertPromise(await corrected.begin(), NEW, 'Nothing ran: the next attempt is the first.')
  },

  'repeatable: the release of an unconfirmed claim that was made frees the key': async (bench) => {
    const owner = await bench.claimant().claims()
    assertPromise(await owner.release({ attempt: 0 }), OK, 'The token, not the attempt, proves who owns it.')
    assertPromise(await bench.look(), failed(), 'The record keeps its own attempt.')
    assertPromise(await bench.claimant().begin(), expectAcquired(2, 'failed'), 'The key is free.')
  },

  'repeatable: a restored claim is found by its begin': async (bench) => {
    const owner = bench.claimant()
    await owner.renew({ attempt: 4 })
    assertPromise(await owner.begin(), expectAcquired(4, 'failed'), 'A claim that renew restored is the claim.')
    await assertKeptOut(bench.claimant(), 'Other tokens do not acquire.')
  },
})
