import { type Bench, type Law, lawFor } from '../bench.js'
import { type Claimant, OTHER_FINGERPRINT } from '../claimant.js'
import { promised, type SeenBegun } from '../seen.js'
import { type Met, repeatEnd, SITUATIONS, type SituationName, shownTo } from '../situations.js'

const law = lawFor('everywhere')

type Result =
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
  readonly own: Result
  readonly rerun: Result
  readonly refuse: Result
  readonly otherFingerprint: Result
}

/** The table in the machine's header, cell by cell. */
const TABLE: Readonly<Record<SituationName, Row>> = {
  none: { own: FIRST, rerun: FIRST, refuse: FIRST, otherFingerprint: FIRST },
  'in-flight, lease live': { own: 'again', rerun: 'refused', refuse: 'refused', otherFingerprint: 'refused' },
  'in-flight, lease lapsed': { own: 'again', rerun: SECOND_UNKNOWN, refuse: 'refused', otherFingerprint: 'refused' },
  'in-flight after a takeover, lease live': {
    own: 'again',
    rerun: 'refused',
    refuse: 'refused',
    otherFingerprint: 'refused',
  },
  'in-flight after a takeover, lease lapsed': {
    own: 'again',
    rerun: THIRD_UNKNOWN,
    refuse: 'refused',
    otherFingerprint: 'refused',
  },
  completed: { own: 'refused', rerun: 'refused', refuse: 'refused', otherFingerprint: 'refused' },
  'completed, answer not kept': { own: 'refused', rerun: 'refused', refuse: 'refused', otherFingerprint: 'refused' },
  'failed, certain': {
    own: 'refused',
    rerun: AFTER_FAILURE,
    refuse: AFTER_FAILURE,
    otherFingerprint: AFTER_FAILURE,
  },
  'failed, uncertain': { own: 'refused', rerun: SECOND_UNKNOWN, refuse: 'refused', otherFingerprint: 'refused' },
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

export const beginTable: readonly Law[] = Object.entries(TABLE).flatMap(([situation, row]) => {
  const prepare = SITUATIONS[situation as SituationName]
  return ASKERS.map(([column, asker, ask]): Law => {
    const result = row[column]
    const name = `begin (${situation}) by ${asker}: ${inWords(result)}`
    return law(name, async (bench) => {
      const met = await prepare(bench)
      const claimant = ask(bench, met)
      const begun = await claimant.begin()
      if (result === 'refused') await checkRefused(bench, met, claimant, begun, name)
      else if (result === 'again') await checkAgain(bench, met, begun, name)
      else await checkAcquired(bench, met, claimant, begun, result, name)
    })
  })
})

async function checkRefused(bench: Bench, met: Met, claimant: Claimant, begun: SeenBegun, name: string): Promise<void> {
  const record = shownTo(claimant.fingerprint, met.record)
  promised(begun, { acquired: false, record }, `${name}, and shows the current record.`)
  promised(await bench.look(), met.record, `${name}, and changes nothing.`)
  if (claimant !== met.owner) {
    promised(await claimant.renew(), { ok: false, record }, `${name}, and the claimant owns nothing.`)
  }
  promised(await repeatEnd(met), { ok: true }, `${name}, and the last owner still owns the record.`)
}

async function checkAgain(bench: Bench, met: Met, begun: SeenBegun, name: string): Promise<void> {
  const afterTakeover = bench.inFlight(met.owner, { attempt: 2, uncertain: true })
  const second = met.record !== null && 'attempt' in met.record && met.record.attempt === 2
  const [first, live] = second ? [SECOND_UNKNOWN, afterTakeover] : [FIRST, bench.inFlight(met.owner)]
  promised(begun, { acquired: true, ...first }, `${name}, with the same reply as the first time.`)
  promised(await bench.look(), live, `${name}, and the lease restarts.`)
}

async function checkAcquired(
  bench: Bench,
  met: Met,
  claimant: Claimant,
  begun: SeenBegun,
  result: typeof FIRST | Exclude<Result, string>,
  name: string,
): Promise<void> {
  promised(begun, { acquired: true, ...result }, `${name}.`)
  const uncertain = result.previousOutcome === 'unknown'
  const record = bench.inFlight(claimant, { attempt: result.attempt, uncertain })
  promised(await bench.look(), record, `${name}, and the record shows it.`)
  promised(await claimant.renew(), { ok: true }, `${name}, and the claimant owns the record.`)
  if (met.record === null) return
  promised(await met.owner.renew(), { ok: false, record }, `${name}, and the former owner does not.`)
}

function inWords(result: Result): string {
  if (result === 'refused') return 'not acquired'
  if (result === 'again') return 'acquired again'
  return `acquired as attempt ${result.attempt}, previous outcome ${result.previousOutcome}`
}
