import { type Bench, createLawFactory, type Law } from '../bench.js'
import { type Claimant, OTHER_ANSWER, OTHER_FINGERPRINT } from '../claimant.js'
import { assertPromise, expectStale, failed, OK, refused, type SeenBegun, type SeenRecord } from '../seen.js'
import {
  completed,
  createSituationLaw,
  failedUncertain,
  hideForeignAnswer,
  type Met,
  repeatEnd,
  type SituationName,
} from '../situations.js'

const law = createLawFactory('everywhere')

type BeginResult =
  /** Not acquired: the record is shown and stays unchanged. */
  | 'refused'
  /** Acquired by the token that already owns it: same attempt and outcome; the lease restarts. */
  | 'again'
  | { readonly attempt: number; readonly previousOutcome: 'none' | 'failed' | 'unknown' }

const FIRST = { attempt: 1, previousOutcome: 'none' } as const
const AFTER_FAILURE = { attempt: 2, previousOutcome: 'failed' } as const
const SECOND_UNKNOWN = { attempt: 2, previousOutcome: 'unknown' } as const
const THIRD_UNKNOWN = { attempt: 3, previousOutcome: 'unknown' } as const

/**
 * Who sends `begin`: the record's own token; another token with the same fingerprint, willing to rerun or not; another
 * token with another fingerprint.
 */
interface Row {
  readonly own: BeginResult
  readonly rerun: BeginResult
  readonly refuse: BeginResult
  readonly otherFingerprint: BeginResult
}

const HELD: Row = { own: 'again', rerun: 'refused', refuse: 'refused', otherFingerprint: 'refused' }
const SETTLED: Row = { ...HELD, own: 'refused' }

/** The table in the machine's header, cell by cell. */
const BEGIN: Readonly<Record<SituationName, Row>> = {
  none: { own: FIRST, rerun: FIRST, refuse: FIRST, otherFingerprint: FIRST },
  'in-flight, lease live': HELD,
  'in-flight, lease lapsed': { ...HELD, rerun: SECOND_UNKNOWN },
  'in-flight after a takeover, lease live': HELD,
  'in-flight after a takeover, lease lapsed': { ...HELD, rerun: THIRD_UNKNOWN },
  completed: SETTLED,
  'completed, answer not kept': SETTLED,
  'failed, certain': { own: 'refused', rerun: AFTER_FAILURE, refuse: AFTER_FAILURE, otherFingerprint: AFTER_FAILURE },
  'failed, uncertain': { ...SETTLED, rerun: SECOND_UNKNOWN },
}

const ASKERS: readonly [column: keyof Row, asker: string, ask: (bench: Bench, met: Met) => Claimant][] = [
  ['own', 'its own token', (_, met) => met.owner],
  ['rerun', 'another token', (bench) => bench.claimant()],
  ['refuse', 'another token that refuses unknown outcomes', (bench) => bench.claimant({ unknownOutcome: 'refuse' })],
  [
    'otherFingerprint',
    'another token with another fingerprint',
    (bench) => bench.claimant({ fingerprint: OTHER_FINGERPRINT }),
  ],
]

export const beginTable: readonly Law[] = Object.entries(BEGIN).flatMap(([situation, row]) => {
  return ASKERS.map(([column, asker, ask]): Law => {
    const result = row[column]
    const name = `begin (${situation}) by ${asker}: ${inWords(result)}`
    return createSituationLaw('everywhere', situation, name, async (bench, met) => {
      const claimant = ask(bench, met)
      const begun = await claimant.begin()
      if (result === 'refused') await checkRefused(bench, met, claimant, begun, name)
      else if (result === 'again') await checkAgain(bench, met, begun, name)
      else await checkAcquired(bench, met, claimant, begun, result, name)
    })
  })
})

async function checkRefused(bench: Bench, met: Met, claimant: Claimant, begun: SeenBegun, name: string): Promise<void> {
  const record = hideForeignAnswer(claimant.fingerprint, met.record)
  assertPromise(begun, refused(record), `${name}, and shows the current record.`)
  assertPromise(await bench.look(), met.record, `${name}, and changes nothing.`)
  if (claimant !== met.owner) {
    assertPromise(await claimant.renew(), expectStale(record), `${name}, and the claimant owns nothing.`)
  }
  assertPromise(await repeatEnd(met), OK, `${name}, and the last owner still owns the record.`)
}

async function checkAgain(bench: Bench, met: Met, begun: SeenBegun, name: string): Promise<void> {
  const afterTakeover = bench.inFlight(met.owner, { attempt: 2, uncertain: true })
  const [first, live] = met.record?.attempt === 2 ? [SECOND_UNKNOWN, afterTakeover] : [FIRST, bench.inFlight(met.owner)]
  assertPromise(begun, { acquired: true, ...first }, `${name}, with the same reply as the first time.`)
  assertPromise(await bench.look(), live, `${name}, and the lease restarts.`)
}

async function checkAcquired(
  bench: Bench,
  met: Met,
  claimant: Claimant,
  begun: SeenBegun,
  result: typeof FIRST | Exclude<BeginResult, string>,
  name: string,
): Promise<void> {
  assertPromise(begun, { acquired: true, ...result }, `${name}.`)
  const uncertain = result.previousOutcome === 'unknown'
  const record = bench.inFlight(claimant, { attempt: result.attempt, uncertain })
  assertPromise(await bench.look(), record, `${name}, and the record shows it.`)
  assertPromise(await claimant.renew(), OK, `${name}, and the claimant owns the record.`)
  if (met.record === null) return
  assertPromise(await met.owner.renew(), expectStale(record), `${name}, and the former owner does not.`)
}

function inWords(result: BeginResult): string {
  if (result === 'refused') return 'not acquired'
  if (result === 'again') return 'acquired again'
  return `acquired as attempt ${result.attempt}, previous outcome ${result.previousOutcome}`
}

type Command = 'renew' | 'complete' | 'release' | 'release as uncertain'
/** `'ends'`: the command does its work. `'repeats'`: ok, and nothing changes. `'stale'`: nothing changes. */
type CommandResult = 'ends' | 'repeats' | 'stale'

const COMMANDS: readonly Command[] = ['renew', 'complete', 'release', 'release as uncertain']

const IN_FLIGHT = { renew: 'ends', complete: 'ends', release: 'ends' } as const
const COMPLETED = { renew: 'stale', complete: 'repeats', release: 'stale' } as const
const FAILED = { renew: 'stale', complete: 'stale', release: 'repeats' } as const

/** The owner's commands on its own record; another's record makes every command stale. */
const OWN: Readonly<Record<Exclude<SituationName, 'none'>, Record<'renew' | 'complete' | 'release', CommandResult>>> = {
  'in-flight, lease live': IN_FLIGHT,
  'in-flight, lease lapsed': IN_FLIGHT,
  'in-flight after a takeover, lease live': IN_FLIGHT,
  'in-flight after a takeover, lease lapsed': IN_FLIGHT,
  completed: COMPLETED,
  'completed, answer not kept': COMPLETED,
  'failed, certain': FAILED,
  'failed, uncertain': FAILED,
}

const IN_WORDS = { ends: 'ok', repeats: 'ok, no change', stale: 'stale' }

const OWN_CELLS = Object.entries(OWN).flatMap(([situation, row]) =>
  COMMANDS.map((command): Law => {
    const result = row[command === 'release as uncertain' ? 'release' : command]
    const name = `${command} (own, ${situation}): ${IN_WORDS[result]}`
    // Sent again with another answer: the first answer stays.
    const answer = result === 'repeats' ? OTHER_ANSWER : undefined
    return createSituationLaw('everywhere', situation, name, async (bench, met) => {
      const done = await send(met.owner, command, answer)
      if (result === 'ends') {
        assertPromise(done, OK, `${name}.`)
        assertPromise(await bench.look(), afterEnd(bench, met, command), `${name}, and the record shows it.`)
      } else {
        assertPromise(done, result === 'stale' ? expectStale(met.record) : OK, `${name}.`)
        assertPromise(await bench.look(), met.record, `${name}, and changes nothing.`)
      }
    })
  }),
)

const ANOTHERS_CELLS = Object.keys(OWN).flatMap((situation) =>
  COMMANDS.map((command): Law => {
    const name = `${command} (another's, ${situation}): stale`
    return createSituationLaw('everywhere', situation, name, async (bench, met) => {
      const stranger = bench.claimant({ attempt: 7 })
      assertPromise(await send(stranger, command, OTHER_ANSWER), expectStale(met.record), `${name}.`)
      assertPromise(await bench.look(), met.record, `${name}, and changes nothing.`)
      assertPromise(await repeatEnd(met), OK, `${name}, and the last owner still owns the record.`)
    })
  }),
)

const NONE_CELLS = COMMANDS.flatMap((command) =>
  [false, true].map((uncertain): Law => {
    const written = { renew: 'restores the claim', complete: 'writes the answer' }
    const result = command in written ? written[command as keyof typeof written] : 'writes the tombstone'
    const name = `${command} (none${uncertain ? ', of an uncertain attempt' : ''}): ${result}`
    return law(name, async (bench) => {
      const owner = bench.claimant({ attempt: 3, uncertain })
      assertPromise(await send(owner, command), OK, `${name}.`)
      const becomes = uncertain || command === 'release as uncertain'
      const record = afterCommand(bench, owner, command, 3, becomes)
      assertPromise(await bench.look(), record, `${name}, with the attempt and uncertainty that the owner sent.`)
      assertPromise(await repeatEnd({ owner, record }), OK, `${name}, and the owner owns the record.`)
    })
  }),
)

export const ownerTable: readonly Law[] = [...OWN_CELLS, ...ANOTHERS_CELLS, ...NONE_CELLS]

function send(claimant: Claimant, command: Command, answer?: typeof OTHER_ANSWER) {
  switch (command) {
    case 'renew':
      return claimant.renew()
    case 'complete':
      return claimant.complete(answer)
    case 'release':
      return claimant.release()
    case 'release as uncertain':
      return claimant.release({ uncertain: true })
  }
}

function afterEnd(bench: Bench, met: Met, command: Command): SeenRecord {
  const takenOver = met.record !== null && 'uncertain' in met.record && met.record.uncertain
  const uncertain = takenOver || command === 'release as uncertain'
  return afterCommand(bench, met.owner, command, takenOver ? 2 : 1, uncertain)
}

function afterCommand(
  bench: Bench,
  owner: Claimant,
  command: Command,
  attempt: number,
  uncertain: boolean,
): SeenRecord {
  switch (command) {
    case 'renew':
      return bench.inFlight(owner, { attempt, uncertain })
    case 'complete':
      return completed(owner, attempt)
    default:
      return uncertain ? failedUncertain(owner, attempt) : failed(attempt)
  }
}
