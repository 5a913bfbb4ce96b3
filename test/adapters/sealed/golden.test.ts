import { readFileSync } from 'node:fs'
import { type Answer, machine } from 'once-per-key/core'
import { sealed, sealingKeyId } from 'once-per-key/sealed'
import { expect, test } from 'vitest'
import { mapStore } from '../../support/map-store.js'
import { ANSWER } from '../claims.js'

// Seals of format 1, of a store at PLACE: frozen. What was sealed before a deployment must be opened after it, and the other way round.
const PLACE = 'payments:'
const GOLDEN = JSON.parse(readFileSync(new URL('golden/sealed-v1.json', import.meta.url), 'utf8')) as {
  readonly key: string
  readonly keyId: string
  readonly answers: Readonly<Record<string, { readonly header: string | null; readonly body: string | null }>>
}

const DUE: Readonly<Record<string, Answer>> = {
  kept: ANSWER,
  'not kept': { ...ANSWER, body: null },
  compressed: { ...ANSWER, body: Buffer.from('{"id":"payout_1"}'.repeat(20)) },
}

test('there is a golden seal of each kind', () => {
  expect(Object.keys(GOLDEN.answers)).toEqual(Object.keys(DUE))
})

test('a key keeps its id', () => {
  expect(sealingKeyId(GOLDEN.key)).toBe(GOLDEN.keyId)
})

test.each(Object.entries(GOLDEN.answers))('a seal of format 1 is opened: %s', async (name, { header, body }) => {
  const answer: Answer = {
    status: 0,
    statusMessage: 'sealed',
    headers: header === null ? [] : [['sealed', header]],
    body: body === null ? null : Buffer.from(body, 'base64'),
  }
  const own = { token: 't', scope: 's', fingerprint: 'fingerprint', attempt: 1, uncertain: false, retentionMs: 1_000 }
  const { record } = machine.complete(null, { ...own, answer }, 1)
  const inner = mapStore(() => 1, undefined, new Map([['acme:k', record as machine.StoredRecord]]))
  expect(Buffer.from(body ?? header ?? '', 'base64')[0]).toBe(1)
  const shown = await sealed(Object.assign(inner, { place: PLACE }), { keys: [GOLDEN.key] }).inspect?.('acme:k')
  expect(structuredClone(shown)).toEqual(structuredClone({ ...shown, answer: plain(DUE[name] as Answer) }))
})

/** A Buffer is bytes. */
function plain(answer: Answer): Answer {
  return { ...answer, body: answer.body && Buffer.from(answer.body) }
}
