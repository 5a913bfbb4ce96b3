import { Buffer } from 'node:buffer'
import type { Answer } from '../../core/index.js'
import { ALL_BYTES, ANSWER, createAtOnce, createSenders, type Event, moveToKey, next, owner } from './history.js'
import { createLaws, KEY_LENGTH, type Law } from './play.js'

/** Strings that a store might interpret or normalise. Each is a separate key. */
const ODD_KEYS = [
  ...'a A a:b a%3Ab a%253Ab a:b: :a:b a::b {a}b {a}c {} %7Ba%7Db % %25 %00 a%00b a* a? [ab] a\\b a/b ../a'.split(' '),
  ...`a'b a"b a%20b __proto__ constructor toString 0 00 1e3 1000 null undefined`.split(' '),
  ...'%E2%82%AC %e2%82%ac \u20ac %C3%A9 e\u0301 \u00e9 %F0%9F%92%B6'.split(' '),
  'a b',
]

/** The longest possible storage key: 255 characters of a scope and 255 of a key, four bytes each, percent-encoded. */
const LONGEST = `${'%F0%9F%92%B6'.repeat(255)}:${'%F0%9F%92%B6'.repeat(254)}`

/** Apart: no two keys share a record. */
export const keyLaws: readonly Law[] = createLaws([], {
  'apart: each key has its own record, however similar two keys are': buildOwnRecords(ODD_KEYS.map((odd) => `:${odd}`)),

  'apart: two keys of 255 characters that differ in the last have separate records': buildOwnRecords(
    ['1', '2', ''].map((end) => `${'k'.repeat(254 - KEY_LENGTH)}${end}`),
  ),

  'apart: two of the longest storage keys that differ in the last have separate records': buildOwnRecords([
    `${LONGEST}%F0%9F%92%B6`,
    `${LONGEST}%F0%9F%92%B7`,
  ]),

  'apart: a token is not valid for another key': [
    [owner.begin({ key: ':here' }), next.begin({ key: ':there' }), owner.complete(ANSWER, { key: ':there' })],
    [owner.release({ key: ':there' }), next.complete(ANSWER, { key: ':there' })],
  ],

  'apart: claims of 50 keys at once all succeed': [
    createAtOnce(...createSenders(50).map((sender, i) => sender.begin({ key: `:${i}` }))),
  ],
})

function buildOwnRecords(keys: readonly string[]): Event[] {
  const cast = createSenders(keys.length).map((sender, i) => sender.copyWithTerms({ key: keys[i] as string }))
  return [
    ...cast.map((sender) => sender.begin()),
    ...cast.map((sender, i) => sender.complete({ ...ANSWER, status: 200 + i })),
    ...keys.map((key) => next.begin({ key })),
  ]
}

/** Answers by what they differ in from an ordinary one. */
const ANSWERS: readonly (readonly [what: string, ...answers: Partial<Answer>[]])[] = [
  ['each of the 256 byte values survives', { body: ALL_BYTES }],
  [
    'bytes that are not UTF-8 survive',
    { body: Uint8Array.of(0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x00, 0x0d, 0x0a) },
  ],
  ['a body of a MiB survives', { body: Uint8Array.from({ length: 2 ** 20 }, (_, i) => (i * 31) % 251) }],
  ['an empty body survives as an empty body', { body: new Uint8Array(0) }],
  ['a body that was not kept stays null', { body: null }],
  [
    'a body that looks like a number or like null is bytes',
    ...['0', '123', 'null', 'false', '{}'].map((text) => ({ body: new TextEncoder().encode(text) })),
  ],
  [
    'a Buffer, and a view into a larger buffer, survive',
    { body: Buffer.from('a Buffer') },
    { body: ALL_BYTES.subarray(100, 110) },
  ],
  [
    'two headers of the same name survive, in their order',
    {
      headers: [
        ['Link', '</a>; rel="next"'],
        ['X-Between', '1'],
        ['Link', '</b>; rel="prev"'],
        ['link', '</c>'],
      ],
    },
  ],
  [
    'header values outside ASCII, empty ones and none at all survive',
    {
      headers: [
        ['x-latin-1', 'caf\u00e9 \u00ff\u0080'],
        ['x-unicode', '\u20ac \u{1f4b6}'],
        ['x-quotes', '"\'\\:,;={}[]%'],
        ['x-empty', ''],
        ['X-CASE-KEPT', '1'],
      ],
    },
    { headers: [] },
  ],
  [
    'a hundred headers, and a value of 10,000 characters, survive',
    { headers: Array.from({ length: 100 }, (_, i) => [`x-${i}`, `${i}`] as const) },
    { headers: [['x-long', 'long '.repeat(2_000)]] },
  ],
  [
    'status and statusMessage survive',
    { status: 200, statusMessage: 'Fine' },
    { status: 204, statusMessage: '' },
    { status: 302, statusMessage: 'Over \u00fcber there' },
    { status: 299, statusMessage: 'OK' },
    { status: 599, statusMessage: '' },
  ],
]

/** An answer is returned byte for byte, as plain fields. */
export const answerLaws: readonly Law[] = [
  ...ANSWERS.flatMap(([what, ...answers]) =>
    createLaws([], {
      [`answer: ${what}`]: answers.flatMap((given, i) => {
        return moveToKey(`:${i}`, [owner.begin(), owner.complete({ ...ANSWER, ...given }), next.begin()], ` of ${i}`)
      }),
    }),
  ),
  ...createLaws([], {
    'answer: a stale command gets the whole answer': [
      [owner.begin(), owner.complete({ ...ANSWER, statusMessage: 'Made', body: ALL_BYTES }), next.renew()],
    ],
  }),
]
