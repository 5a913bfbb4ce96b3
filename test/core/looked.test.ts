import { describe, expect, test } from 'vitest'
import { type Entry, enter, type Withheld, withhold } from '../../src/core/record/looked.js'
import type { StoredRecord } from '../../src/core/record/machine.js'

const NOW = 1_000
const ANSWER = { status: 201, statusMessage: '', headers: [], body: null }
const of = (token: string, attempt = 1) => ({ token, fingerprint: 'f', attempt, expiresAt: NOW + 100 }) as const

const LAPSED: StoredRecord = { state: 'in-flight', ...of('a'), uncertain: false, leaseUntil: NOW }
const LIVE: StoredRecord = { ...LAPSED, leaseUntil: NOW + 1 }
const UNCERTAIN: StoredRecord = { state: 'failed', ...of('a'), uncertain: true }
const CERTAIN: StoredRecord = { state: 'failed', ...of('a'), fingerprint: null, uncertain: false }
const COMPLETED: StoredRecord = { state: 'completed', ...of('a'), answer: ANSWER }
const EXPIRED: StoredRecord = { ...COMPLETED, expiresAt: NOW }

describe('a transaction takes the key', () => {
  const unseen: Entry = { token: 't', seen: null, attempt: 1, uncertain: false, idleMs: 1 }
  const afterUnknown: Entry = { ...unseen, seen: 'a', attempt: 2, uncertain: true }
  const afterFailure: Entry = { ...afterUnknown, uncertain: false }

  test.each<[string, StoredRecord | null, Entry]>([
    ['of no record', null, unseen],
    ['of an expired one', EXPIRED, unseen],
    ['of a lapsed one', LAPSED, afterUnknown],
    ['of an uncertain one', UNCERTAIN, afterUnknown],
    ['of one that failed with certainty', CERTAIN, afterFailure],
  ])('%s, as the look has shown it', (_what, record, entry) => {
    expect(enter(record, entry, NOW)).toBe('entered')
  })

  test.each<[string, StoredRecord | null, Entry]>([
    ['there was none, and there is one', CERTAIN, { ...unseen, attempt: 2 }],
    ['it has gone', null, { ...afterFailure, attempt: 1 }],
    ['it is completed', COMPLETED, afterUnknown],
    ['its lease lives again', LIVE, afterUnknown],
    ['it belongs to another', { ...UNCERTAIN, token: 'b' }, afterUnknown],
    ['it is of another attempt', { ...UNCERTAIN, attempt: 2 }, afterUnknown],
    ['its unknown outcome has become a failure', CERTAIN, afterUnknown],
    ['its outcome has become unknown', UNCERTAIN, afterFailure],
  ])('not where the record has changed since the look: %s', (_what, record, entry) => {
    expect(enter(record, entry, NOW)).toBe('taken')
  })
})

describe('a success that is withheld', () => {
  const own: Withheld = { token: 't', seen: null, attempt: 1, scope: 's', fingerprint: 'f', retentionMs: 50 }
  const failed = { state: 'failed', token: 't', fingerprint: 'f', uncertain: true, expiresAt: NOW + 50 }

  test('leaves a failed and uncertain record where there is none', () => {
    expect(withhold(null, own, NOW)).toEqual({ record: { ...failed, attempt: 1 }, reply: { ok: true } })
  })

  test('replaces the record that the look has shown, and hands the steps of an unknown outcome over', () => {
    const steps = [{ label: 'charge', state: 'done', order: 2, result: new Uint8Array(1) }] as const
    const taken = { ...own, seen: 'a', attempt: 2 }
    expect(withhold({ ...UNCERTAIN, steps }, taken, NOW)).toEqual({
      record: { ...failed, attempt: 2, steps: [{ ...steps[0], order: 0 }] },
      reply: { ok: true },
    })
    expect(withhold(CERTAIN, taken, NOW)).toEqual({ record: { ...failed, attempt: 2 }, reply: { ok: true } })
  })

  test.each<[string, StoredRecord, string | null]>([
    ['has been completed', COMPLETED, 'a'],
    ['is in flight', LIVE, 'a'],
    ['another attempt has failed', { ...UNCERTAIN, token: 'b' }, 'a'],
    ['another attempt has made where none was', CERTAIN, null],
  ])('changes no record that %s', (_what, record, seen) => {
    const change = withhold(record, { ...own, seen }, NOW)
    expect(change).toMatchObject({ record, reply: { ok: false, record: { state: record.state } } })
  })

  test('changes nothing when it is sent again', () => {
    const { record } = withhold(null, own, NOW)
    expect(withhold(record, own, NOW + 1)).toEqual({ record, reply: { ok: true } })
  })
})
