import { Buffer } from 'node:buffer'
import type { Answer } from '../../core/index.js'
import { createLawFactory, createLaws, type Law } from '../bench.js'
import { ANSWER } from '../claimant.js'
import { assertPromise, getAnswer, getReplayedAnswer, OK, toSeenAnswer } from '../seen.js'

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, i) => i)

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
  ...ANSWERS.map(([what, ...answers]) =>
    createLawFactory('everywhere')(`answer: ${what}`, async (bench) => {
      for (const [i, given] of answers.entries()) {
        const answer = { ...ANSWER, ...given }
        const key = `${bench.key}:${i}`
        const owner = await bench.claimant({ key }).claims()
        assertPromise(await owner.complete(answer), OK, 'An owner can complete with any answer.')
        const replayed = getReplayedAnswer(await bench.claimant({ key }).begin()) ?? 'no answer'
        assertPromise(replayed, toSeenAnswer(answer), 'An answer is returned exactly as it was stored.')
      }
    }),
  ),

  ...createLaws({
    'answer: a stale command gets the whole answer': async (bench) => {
      const owner = await bench.claimant().claims()
      const answer = { ...ANSWER, statusMessage: 'Made', body: ALL_BYTES }
      await owner.complete(answer)
      const shown = getAnswer(await bench.look())
      assertPromise(shown, toSeenAnswer(answer), 'A former owner needs the whole answer, because it sends it.')
    },
  }),
]
