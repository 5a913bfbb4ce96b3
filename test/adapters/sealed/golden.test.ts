import { readFileSync } from 'node:fs'
import { type Answer, machine } from 'once-per-key/core'
import { sealed, sealingKeyId } from 'once-per-key/sealed'
import { expect, test } from 'vitest'
import { mapStore } from '../../support/map-store.js'
import { ANSWER } from '../claims.js'

// Seals of each format: frozen. What was sealed before a deployment must be opened after it, and the other way round.
interface Golden {
  readonly key: string
  readonly keyId: string
  readonly answers: Readonly<Record<string, { readonly header: string | null; readonly body: string | null }>>
}

const golden = (version: number): Golden =>
  JSON.parse(readFileSync(new URL(`golden/sealed-v${version}.json`, import.meta.url), 'utf8'))
const GOLDEN = golden(1)
const SEALS = [1, 2].flatMap((format) =>
  Object.entries(golden(format).answers).map(([name, sealed]) => ({ format, name, ...sealed })),
)

const DUE: Readonly<Record<string, Answer>> = {
  kept: ANSWER,
  'not kept': { ...ANSWER, body: null },
  compressed: { ...ANSWER, body: Buffer.from('{"id":"payout_1"}'.repeat(20)) },
}

test('there is a golden seal of each kind', () => {
  for (const format of [1, 2]) expect(Object.keys(golden(format).answers)).toEqual(Object.keys(DUE))
})

test('a key keeps its id', () => {
  expect(sealingKeyId(GOLDEN.key)).toBe(GOLDEN.keyId)
})

test.each(SEALS)('a seal of format $format is opened: $name', async ({ format, name, header, body }) => {
  const answer: Answer = {
    status: 0,
    statusMessage: 'sealed',
    headers: header === null ? [] : [['sealed', header]],
    body: body === null ? null : Buffer.from(body, 'base64'),
  }
  const own = { token: 't', scope: 's', fingerprint: 'fingerprint', attempt: 1, uncertain: false, retentionMs: 1_000 }
  const { record } = machine.complete(null, { ...own, answer }, 1)
  const inner = mapStore(() => 1, undefined, new Map([['acme:k', record as machine.StoredRecord]]))
  expect(Buffer.from(body ?? header ?? '', 'base64')[0]).toBe(format)
  // The first is bound to no place.
  const shown = await sealed(Object.assign(inner, { place: 'payments:' }), { keys: [GOLDEN.key] }).inspect?.('acme:k')
  expect(structuredClone(shown)).toEqual(structuredClone({ ...shown, answer: plain(DUE[name] as Answer) }))
})

/** A Buffer is bytes. */
function plain(answer: Answer): Answer {
  return { ...answer, body: answer.body && Buffer.from(answer.body) }
}
