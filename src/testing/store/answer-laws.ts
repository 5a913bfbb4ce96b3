import { Buffer } from 'node:buffer'
import type { Answer } from '../../core/index.js'
import { type Bench, everywhere, type Law } from '../bench.js'
import { ANSWER, FINGERPRINT } from '../claimant.js'
import { promised, seenAnswer } from '../seen.js'

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, i) => i)

/** An answer is returned byte for byte, as plain fields. */
export const answerLaws: readonly Law[] = everywhere({
  'answer: each of the 256 byte values survives': (bench) => survives(bench, { ...ANSWER, body: ALL_BYTES }),

  'answer: bytes that are not UTF-8 survive': (bench) =>
    survives(bench, { ...ANSWER, body: Uint8Array.of(0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x00, 0x0d, 0x0a) }),

  'answer: a body of a MiB survives': (bench) =>
    survives(bench, { ...ANSWER, body: Uint8Array.from({ length: 2 ** 20 }, (_, i) => (i * 31) % 251) }),

  'answer: an empty body survives as an empty body': (bench) => survives(bench, { ...ANSWER, body: new Uint8Array(0) }),

  'answer: a body that was not kept stays null': (bench) => survives(bench, { ...ANSWER, body: null }),

  'answer: a body that looks like a number or like null is bytes': async (bench) => {
    for (const [i, text] of ['0', '123', 'null', 'false', '{}'].entries()) {
      await survives(bench, { ...ANSWER, body: new TextEncoder().encode(text) }, `${bench.key}:${i}`)
    }
  },

  'answer: a Buffer, and a view into a larger buffer, survive': async (bench) => {
    await survives(bench, { ...ANSWER, body: Buffer.from('a Buffer') }, `${bench.key}:1`)
    await survives(bench, { ...ANSWER, body: ALL_BYTES.subarray(100, 110) }, `${bench.key}:2`)
  },

  'answer: two headers of the same name survive, in their order': (bench) =>
    survives(bench, {
      ...ANSWER,
      headers: [
        ['Link', '</a>; rel="next"'],
        ['X-Between', '1'],
        ['Link', '</b>; rel="prev"'],
        ['link', '</c>'],
      ],
    }),

  'answer: header values outside ASCII, empty ones and none at all survive': async (bench) => {
    const headers = [
      ['x-latin-1', 'caf\u00e9 \u00ff\u0080'],
      ['x-unicode', '\u20ac \u{1f4b6}'],
      ['x-quotes', '"\'\\:,;={}[]%'],
      ['x-empty', ''],
      ['X-CASE-KEPT', '1'],
    ] as const
    await survives(bench, { ...ANSWER, headers }, `${bench.key}:1`)
    await survives(bench, { ...ANSWER, headers: [] }, `${bench.key}:2`)
  },

  'answer: a hundred headers, and a value of 10,000 characters, survive': async (bench) => {
    const headers = Array.from({ length: 100 }, (_, i) => [`x-${i}`, `${i}`] as const)
    await survives(bench, { ...ANSWER, headers }, `${bench.key}:1`)
    await survives(bench, { ...ANSWER, headers: [['x-long', 'long '.repeat(2_000)]] }, `${bench.key}:2`)
  },

  'answer: status and statusMessage survive': async (bench) => {
    for (const [status, statusMessage] of [
      [200, 'Fine'],
      [204, ''],
      [302, 'Over \u00fcber there'],
      [299, 'OK'],
      [599, ''],
    ] as const) {
      await survives(bench, { ...ANSWER, status, statusMessage }, `${bench.key}:${status}`)
    }
  },

  'answer: a stale command gets the whole answer': async (bench) => {
    const owner = await bench.claimant().claims()
    const answer = { ...ANSWER, statusMessage: 'Made', body: ALL_BYTES }
    await owner.complete(answer)
    const record = await bench.look()
    const shown = record !== null && 'answer' in record ? record.answer : null
    promised(shown, seenAnswer(answer), 'A former owner needs the whole answer, because it sends it.')
  },
})

async function survives(bench: Bench, answer: Answer, key = bench.key): Promise<void> {
  const owner = await bench.claimant({ key }).claims()
  promised(await owner.complete(answer), { ok: true }, 'An owner can complete with any answer.')
  promised(await replayed(bench, key), seenAnswer(answer), 'An answer is returned exactly as it was stored.')
}

async function replayed(bench: Bench, key = bench.key) {
  const answer = await read(bench, key)
  return answer === null ? 'no answer' : seenAnswer(answer)
}

async function read(bench: Bench, key = bench.key): Promise<Answer | null> {
  const begun = await bench.store.begin(key, claimOf('reader'))
  return !begun.acquired && begun.record.state === 'completed' ? begun.record.answer : null
}

function claimOf(token: string) {
  const hourMs = 3_600_000
  return {
    token,
    scope: 'laws',
    fingerprint: FINGERPRINT,
    leaseMs: hourMs,
    retentionMs: hourMs,
    unknownOutcome: 'rerun',
  } as const
}
