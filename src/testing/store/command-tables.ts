import type { machine } from '../../core/index.js'
import {
  ANSWER,
  COMPLETED,
  type Command,
  corrected,
  type Event,
  FAILED,
  LAPSE,
  LIST,
  LOST,
  listScope,
  moveToKey,
  next,
  OTHER_ANSWER,
  OTHER_FINGERPRINT,
  operator,
  owner,
  PASS,
  refusing,
  stranger,
  third,
} from './history.js'
import { Oracle, type Reply } from './oracle.js'
import { createLaws, type Law } from './play.js'

/** Every kind of record, created with commands only. */
const SITUATIONS: Readonly<Record<string, readonly Event[]>> = {
  none: [],
  'in-flight, lease live': [owner.begin()],
  'in-flight, lease lapsed': LAPSE,
  'in-flight after a takeover, lease live': [third.begin({ leaseMs: '1u' }), PASS, owner.begin()],
  'in-flight after a takeover, lease lapsed': [third.begin({ leaseMs: '1u' }), PASS, ...LAPSE],
  completed: COMPLETED,
  'completed, answer not kept': [owner.begin(), owner.complete({ ...ANSWER, body: null })],
  'failed, certain': FAILED,
  'failed, uncertain': LOST,
}

const { none: _, ...RECORDS } = SITUATIONS

type FoundRecord = machine.StoredRecord | null
type ToCommand = (met: FoundRecord) => Command

const ENDS: readonly (readonly [name: string, by: (sender: typeof owner) => Command])[] = [
  ['renew', (sender) => sender.renew()],
  ['complete', (sender) => sender.complete(OTHER_ANSWER)],
  ['release', (sender) => sender.release()],
  ['release as uncertain', (sender) => sender.lose()],
]

/** Who sends `begin` to each kind of record, or another of the owner's commands. `%`: the situation. */
export const ownersTable: readonly Law[] = [
  ...createTable([], SITUATIONS, {
    'begin (%) by its own token': () => owner.begin(),
    'begin (%) by another token': () => next.begin(),
    'begin (%) by another token that refuses unknown outcomes': () => refusing.begin(),
    'begin (%) by another token with another fingerprint': () => corrected.begin(),
  }),
  ...ENDS.flatMap(([command, by]) => [
    ...createTable([], RECORDS, {
      [`${command} (own, %)`]: () => by(owner),
      [`${command} (another's, %)`]: () => by(stranger.copyWithTerms({ attempt: 7 })),
    }),
    ...createTable(
      [],
      { none: [] },
      {
        [`${command} (%)`]: () => by(owner.copyWithTerms({ attempt: 3 })),
        [`${command} (%, of an uncertain attempt)`]: () => by(owner.copyWithTerms({ attempt: 3, uncertain: true })),
      },
    ),
  ]),
]

const LATE = [owner.renew(), owner.complete(OTHER_ANSWER), owner.lose()]

const resolutions = Object.entries({
  failed: null,
  completed: ANSWER,
  'completed, answer not kept': { ...ANSWER, body: null },
  'to be rerun': 'rerun' as const,
}).map(
  ([as, answer]) =>
    [`resolve as ${as} (%)`, (met: FoundRecord) => operator.resolve(met?.attempt ?? 1, answer)] as const,
)

const toForgetting = (met: FoundRecord, removes: boolean) => ({
  ...({ state: met?.state === 'failed' ? 'failed' : 'completed', attempt: met?.attempt ?? 1 } as const),
  ...{ fingerprint: met?.fingerprint ?? null, removes },
})

export const operatorsTable: readonly Law[] = [
  ...createTable(['operable'], SITUATIONS, { 'inspect (%)': () => operator.inspect() }),
  ...createTable(['operable'], RECORDS, Object.fromEntries(resolutions), LATE),
  ...createTable(['operable'], { none: [] }, Object.fromEntries(resolutions)),
  ...createTable(['operable'], SITUATIONS, {
    'resolve (%) of the attempt before': (met) => operator.resolve((met?.attempt ?? 1) - 1, ANSWER),
    'resolve (%) of the attempt after': (met) => operator.resolve((met?.attempt ?? 1) + 1, ANSWER),
  }),
  ...[false, true].flatMap((removes) => {
    const name = removes ? 'forget, removing' : 'forget'
    const others = [{ attempt: 2 }, { fingerprint: OTHER_FINGERPRINT }, { state: 'failed' }] as const
    const ofOthers = others.map((other): [string, ToCommand] => {
      return [
        `${name} (%) of another ${Object.keys(other)[0]}`,
        (met) => operator.forget({ ...toForgetting(met, removes), ...other }),
      ]
    })
    return [
      ...createTable(['forgetful'], SITUATIONS, {
        [`${name} (%)`]: (met) => operator.forget(toForgetting(met, removes)),
      }),
      ...createTable(['forgetful'], { completed: COMPLETED }, Object.fromEntries(ofOthers)),
    ]
  }),
  ...Object.entries(SITUATIONS).flatMap(([situation, history]) => {
    const isListed = /lapsed|uncertain/.test(situation)
    const all = situation === 'none' ? 'lists nothing' : 'shows the record without its answer'
    return [
      ...createLaws(['listable'], {
        [`list (${situation}): ${isListed ? 'shows the record' : 'skips it'}`]: [...history, LIST],
      }),
      ...createLaws(['forgetful'], {
        [`listScope (${situation}): ${all}`]: [...moveToKey(':one', history), listScope()],
      }),
    ]
  }),
]

/** A law for each situation and command: its name says what the machine replies. */
function createTable(
  needs: Law['needs'],
  situations: typeof SITUATIONS,
  commands: Readonly<Record<string, ToCommand>>,
  late: readonly Command[] = [],
): Law[] {
  return Object.entries(situations).flatMap(([situation, history]) => {
    const oracle = new Oracle(1)
    oracle.predictHistory(history)
    const met = oracle.findRecord('') ?? null
    return Object.entries(commands).flatMap(([name, toCommand]) => {
      const command = toCommand(met)
      const [due] = oracle.predict([oracle.toCall(command)])
      const words = due?.replies[0] && describeReply(due.replies[0], due.record === met)
      return createLaws(needs, { [`${name.replace('%', situation)}: ${words}`]: [...history, command, ...late] })
    })
  })
}

function describeReply(reply: Reply, isUnchanged: boolean): string {
  if ('ok' in reply) return reply.ok ? `ok${isUnchanged ? ', no change' : ''}` : 'stale'
  if (!('acquired' in reply)) return 'shows the record'
  if (!reply.acquired) return 'not acquired'
  return `acquired as attempt ${reply.attempt}, previous outcome ${reply.previousOutcome}`
}
