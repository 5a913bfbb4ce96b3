import {
  ALL_BYTES,
  ANSWER,
  COMPLETED,
  corrected,
  createAtOnce,
  type Event,
  LAPSE,
  LIST,
  LOST,
  listScope,
  moveToKey,
  NEARLY,
  next,
  operator,
  owner,
  PASS,
  REST,
  refusing,
  Sender,
  third,
} from './history.js'
import { createLaws, type Law } from './play.js'

const BARELY = { leaseMs: 1, retentionMs: '4u' } as const
const OUTCOMES = { completed: ANSWER, failed: null }

const FORGET = operator.copyWithTerms({ fingerprint: 'a'.repeat(64) }).forget()

export const operatorLaws: readonly Law[] = [
  ...createLaws(['operable'], {
    'resolve: as failed frees the key for any fingerprint, with previous outcome failed': [
      [...LAPSE, operator.resolve(1, null), corrected.begin({ unknownOutcome: 'refuse' })],
    ],

    'resolve: to be rerun lets the next claim go on once, with its fingerprint, and told so': [
      [...LAPSE, operator.resolve(1, 'rerun'), operator.inspect(), corrected.begin({ unknownOutcome: 'refuse' })],
      [refusing.begin(), refusing.lose(), operator.inspect(), third.begin({ unknownOutcome: 'refuse' })],
    ],

    'resolve: a repetition after a later attempt changes nothing': [
      [...LAPSE, operator.resolve(1, null), next.begin({ leaseMs: '1u' }), PASS],
      [operator.resolve(1, null), next.renew()],
    ],

    'resolve: of 20 operators at once, one resolves': [
      ...LAPSE,
      createAtOnce(
        ...Array.from({ length: 20 }, (_, i) => new Sender(`operator ${i}`).resolve(1, i % 2 === 0 ? ANSWER : null)),
      ),
    ],

    'resolve: the answer is kept unchanged': [
      ...LAPSE,
      operator.resolve(1, {
        status: 203,
        statusMessage: 'Found out',
        headers: [
          ['Link', '</a>; rel="next"'],
          ['Link', 'caf\u00e9'],
        ],
        body: ALL_BYTES,
      }),
      operator.inspect(),
    ],

    'inspect: changes neither lease nor retention': [
      [owner.begin(BARELY), NEARLY, operator.inspect(), operator.inspect(), REST, operator.inspect()],
    ],
  }),

  ...Object.entries(OUTCOMES).flatMap(([state, answer]) =>
    createLaws(['operable'], {
      [`resolve: a repetition is confirmed and changes nothing (${state})`]: [
        [...LAPSE, operator.resolve(1, answer), operator.resolve(1, answer === null ? ANSWER : null)],
      ],
      [`resolve: restarts the retention of the record (${state})`]: [
        [owner.begin(BARELY), NEARLY, operator.resolve(1, answer), REST, operator.inspect()],
      ],
      [`resolve: never shortens the retention of the record (${state})`]: [
        [...LAPSE, operator.resolve(1, answer, { retentionMs: '1u' }), PASS, operator.inspect()],
      ],
      [`resolve: after its retention the key is new (${state})`]: [
        [owner.begin(BARELY), NEARLY, operator.resolve(1, answer, { retentionMs: 1 }), REST, next.begin()],
      ],
    }),
  ),
]

const ODD_KEYS = ['a%3Ab:c', 'webhook:a:b', "it's*[a]?", '%C3%A9:%20'].map((key) => `:${key}`)
const ODD_SCOPE = ":it's*[a]?%3A"

export const listLaws: readonly Law[] = createLaws(['listable'], {
  'list: a walk lists all of them, and ends': [...playOnEach(createFiftyKeys(':'), LOST), LIST],
  'list: shows the key unchanged': [...playOnEach(ODD_KEYS, LOST), LIST],
  'list: shows the rest of the retention': [...LOST, LIST],
  'list: skips records that were resolved or claimed again': [
    [...playOnEach([':resolved', ':claimed'], LOST), operator.resolve(1, null, { key: ':resolved' })],
    [next.begin({ key: ':claimed' }), LIST],
  ],
  'list: skips expired records': [owner.begin(BARELY), NEARLY, LIST, REST, LIST],
})

export const forgetLaws: readonly Law[] = createLaws(['forgetful'], {
  'forget: a forgotten key is never claimed again': [...COMPLETED, FORGET, next.begin(), operator.inspect()],
  'forget: keeps the rest of the retention': [
    [owner.begin({ retentionMs: '4u' }), owner.complete(ANSWER, { retentionMs: '4u' }), NEARLY],
    [FORGET, REST],
    [operator.inspect()],
  ],
  'forget: does not shorten the retention': [...COMPLETED, FORGET, PASS, operator.inspect()],
  'listScope: a walk lists all of a scope, and no other': [
    [
      ...playOnEach([...createFiftyKeys(`${ODD_SCOPE}:%C3%A9`), `${ODD_SCOPE}x:1`, ':1'], [owner.begin()]),
      listScope(ODD_SCOPE),
    ],
  ],
  'listScope: shows the rest of the retention': [owner.begin({ key: ':one' }), listScope()],
  'listScope: skips expired records': [
    [...moveToKey(':one', [owner.begin(), owner.complete(ANSWER, { retentionMs: '1u' }), PASS]), listScope()],
  ],
  'listScope: shows the answer of which nothing is kept': [...moveToKey(':one', [...COMPLETED, FORGET]), listScope()],
})

function createFiftyKeys(prefix: string): string[] {
  return Array.from({ length: 50 }, (_, i) => `${prefix}${i}`)
}

function playOnEach(keys: readonly string[], history: readonly Event[]): Event[] {
  return keys.flatMap((key) => moveToKey(key, history, ` of ${key}`))
}
