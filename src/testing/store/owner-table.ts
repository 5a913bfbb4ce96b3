import { type Bench, type Law, lawFor } from '../bench.js'
import { type Claimant, OTHER_ANSWER, SEEN_ANSWER } from '../claimant.js'
import { promised, type SeenRecord } from '../seen.js'
import { completed, type Met, repeatEnd, SITUATIONS, type SituationName } from '../situations.js'

const law = lawFor('everywhere')

type Command = 'renew' | 'complete' | 'release' | 'release as uncertain'
/** `'ends'`: the command does its work. `'repeats'`: ok, and nothing changes. `'stale'`: nothing changes. */
type Result = 'ends' | 'repeats' | 'stale'

const COMMANDS: readonly Command[] = ['renew', 'complete', 'release', 'release as uncertain']

const IN_FLIGHT = { renew: 'ends', complete: 'ends', release: 'ends' } as const
const COMPLETED = { renew: 'stale', complete: 'repeats', release: 'stale' } as const
const FAILED = { renew: 'stale', complete: 'stale', release: 'repeats' } as const

/** The owner's commands on its own record; another's record makes every command stale. */
const OWN: Readonly<Record<Exclude<SituationName, 'none'>, Record<'renew' | 'complete' | 'release', Result>>> = {
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
    const prepare = SITUATIONS[situation as SituationName]
    const result = row[command === 'release as uncertain' ? 'release' : command]
    const name = `${command} (own, ${situation}): ${IN_WORDS[result]}`
    // Sent again with another answer: the first answer stays.
    const answer = result === 'repeats' ? OTHER_ANSWER : undefined
    return law(name, async (bench) => {
      const met = await prepare(bench)
      const done = await send(met.owner, command, answer)
      if (result === 'ends') {
        promised(done, { ok: true }, `${name}.`)
        promised(await bench.look(), afterEnd(bench, met, command), `${name}, and the record shows it.`)
      } else {
        promised(done, result === 'stale' ? { ok: false, record: met.record } : { ok: true }, `${name}.`)
        promised(await bench.look(), met.record, `${name}, and changes nothing.`)
      }
    })
  }),
)

const ANOTHERS_CELLS = Object.keys(OWN).flatMap((situation) =>
  COMMANDS.map((command): Law => {
    const prepare = SITUATIONS[situation as SituationName]
    const name = `${command} (another's, ${situation}): stale`
    return law(name, async (bench) => {
      const met = await prepare(bench)
      const stranger = bench.claimant({ attempt: 7 })
      promised(await send(stranger, command, OTHER_ANSWER), { ok: false, record: met.record }, `${name}.`)
      promised(await bench.look(), met.record, `${name}, and changes nothing.`)
      promised(await repeatEnd(met), { ok: true }, `${name}, and the last owner still owns the record.`)
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
      promised(await send(owner, command), { ok: true }, `${name}.`)
      const becomes = uncertain || command === 'release as uncertain'
      const record = afterCommand(bench, owner, command, 3, becomes)
      promised(await bench.look(), record, `${name}, with the attempt and uncertainty that the owner sent.`)
      promised(await repeatEnd({ owner, record }), { ok: true }, `${name}, and the owner owns the record.`)
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
      return { ...completed(owner, attempt), answer: SEEN_ANSWER }
    default:
      return { state: 'failed', fingerprint: uncertain ? owner.fingerprint : null, attempt, uncertain }
  }
}
