import { machine, type Resolution } from 'once-per-key/core'
import { describe, expect, test } from 'vitest'
import {
  ANSWER,
  claimOf,
  FAILED_MS,
  LEASE_MS,
  NAMES,
  NOW,
  OTHER_ANSWER,
  ownOf,
  RECORDS,
  RETENTION_MS,
  type RecordName,
  type StoredRecord,
  shown,
} from '../support/machine-records.js'

const UNKNOWN: Record<RecordName, boolean> = {
  'in-flight, lease live': false,
  'in-flight, uncertain, lease live': false,
  'in-flight, lapsed at this instant': true,
  'in-flight, lapsed long ago': true,
  'in-flight, uncertain, lapsed': true,
  'in-flight, first attempt, lapsed': true,
  completed: false,
  'completed, answer not kept': false,
  'failed, certain': false,
  'failed, never confirmed': false,
  'failed, uncertain': true,
}
const RESOLVABLE = NAMES.filter((name) => UNKNOWN[name])
const KNOWN = NAMES.filter((name) => !UNKNOWN[name])
const ANSWERS = [OTHER_ANSWER, { ...OTHER_ANSWER, body: null }, null]

function resolutionOf(record: StoredRecord, changes: Partial<Resolution> = {}): Resolution {
  return { token: 'operator', attempt: record.attempt, answer: null, retentionMs: RETENTION_MS, ...changes }
}

describe('inspect', () => {
  test.each(NAMES)('shows %s, and changes nothing', (name) => {
    const stored = RECORDS[name]
    const { record, reply } = machine.inspect(stored, NOW)
    expect(reply).toEqual(shown(stored))
    expect(record).toBe(stored)
  })

  test.each(NAMES)('shows %s until it expires, and then none', (name) => {
    expect(machine.inspect({ ...RECORDS[name], expiresAt: NOW + 1 }, NOW).reply).toEqual(shown(RECORDS[name]))
    expect(machine.inspect({ ...RECORDS[name], expiresAt: NOW }, NOW)).toEqual({ record: null, reply: null })
  })

  test('shows none where there is none', () => {
    expect(machine.inspect(null, NOW)).toEqual({ record: null, reply: null })
  })
})

describe('resolve', () => {
  test.each(RESOLVABLE)('%s: a failure is certain, bound to nothing, and of the attempt that was settled', (name) => {
    const { record, reply } = machine.resolve(RECORDS[name], resolutionOf(RECORDS[name]), NOW)
    expect(reply).toEqual({ ok: true })
    expect(record).toEqual({
      state: 'failed',
      token: 'operator',
      fingerprint: null,
      attempt: RECORDS[name].attempt,
      uncertain: false,
      expiresAt: NOW + RETENTION_MS,
    })
  })

  test.each(RESOLVABLE)(
    '%s: a completion keeps its answer and its fingerprint, and the attempt that was settled',
    (name) => {
      for (const answer of [OTHER_ANSWER, { ...OTHER_ANSWER, body: null }]) {
        const { record, reply } = machine.resolve(RECORDS[name], resolutionOf(RECORDS[name], { answer }), NOW)
        expect(reply).toEqual({ ok: true })
        expect(record).toEqual({
          state: 'completed',
          token: 'operator',
          fingerprint: 'f',
          attempt: RECORDS[name].attempt,
          answer,
          expiresAt: NOW + RETENTION_MS,
        })
      }
    },
  )

  test.each(KNOWN)('%s: stale, and nothing changes', (name) => {
    const stored = RECORDS[name]
    for (const answer of ANSWERS) {
      const { record, reply } = machine.resolve(stored, resolutionOf(stored, { answer }), NOW)
      expect(reply).toEqual({ ok: false, record: shown(stored) })
      expect(record).toBe(stored)
    }
  })

  test.each(NAMES)('%s, of which another attempt was looked at: stale, and nothing changes', (name) => {
    const stored = RECORDS[name]
    for (const attempt of [0, 1, 2, 3, 4].filter((other) => other !== stored.attempt)) {
      const { record, reply } = machine.resolve(stored, resolutionOf(stored, { attempt }), NOW)
      expect(reply).toEqual({ ok: false, record: shown(stored) })
      expect(record).toBe(stored)
    }
  })

  test.each([null, ...NAMES])('none, or %s that expires at this instant: stale, and nothing is written', (name) => {
    const stored = name && { ...RECORDS[name], expiresAt: NOW }
    for (const answer of ANSWERS) {
      const { record, reply } = machine.resolve(stored, resolutionOf(RECORDS['failed, uncertain'], { answer }), NOW)
      expect(reply).toEqual({ ok: false, record: null })
      expect(record).toBeNull()
    }
  })

  test.each(RESOLVABLE)('%s, sent again, whatever it says: ok, and nothing changes', (name) => {
    for (const answer of ANSWERS) {
      const first = machine.resolve(RECORDS[name], resolutionOf(RECORDS[name], { answer }), NOW)
      for (const other of ANSWERS) {
        const again = machine.resolve(first.record, resolutionOf(RECORDS[name], { answer: other }), NOW + 1)
        expect(again.reply).toEqual({ ok: true })
        expect(again.record).toBe(first.record)
      }
    }
  })

  test('by the token of a claim that is in flight is judged like any other', () => {
    const token = 'owner'
    const live = RECORDS['in-flight, lease live']
    expect(machine.resolve(live, resolutionOf(live, { token }), NOW).reply).toMatchObject({ ok: false })
    const lapsed = RECORDS['in-flight, lapsed long ago']
    expect(machine.resolve(lapsed, resolutionOf(lapsed, { token }), NOW).record).toMatchObject({ attempt: 3 })
  })

  test.each(RESOLVABLE)('%s: the record is kept as long as it was to be, or longer', (name) => {
    for (const answer of ANSWERS) {
      const expiryFor = (retentionMs: number) =>
        machine.resolve(RECORDS[name], resolutionOf(RECORDS[name], { answer, retentionMs }), NOW).record?.expiresAt
      expect(expiryFor(59_999)).toBe(NOW + 60_000)
      expect(expiryFor(60_001)).toBe(NOW + 60_001)
    }
  })

  test.each(RESOLVABLE)('%s: each late command of the owner that was lost is stale', (name) => {
    for (const answer of ANSWERS) {
      const { record } = machine.resolve(RECORDS[name], resolutionOf(RECORDS[name], { answer }), NOW)
      const own = ownOf({ uncertain: true })
      const late = [
        machine.renew(record, { ...own, leaseMs: LEASE_MS }, NOW),
        machine.complete(record, { ...own, answer: ANSWER }, NOW),
        machine.release(record, { ...own, failedMs: FAILED_MS }, NOW),
      ]
      for (const step of late) {
        expect(step.record).toBe(record)
        expect(step.reply).toEqual({ ok: false, record: shown(record as StoredRecord) })
      }
    }
  })

  test.each(RESOLVABLE)(
    '%s: as failed it is claimed by either policy, for any request, told that one failed',
    (name) => {
      const { record } = machine.resolve(RECORDS[name], resolutionOf(RECORDS[name]), NOW)
      for (const unknownOutcome of ['rerun', 'refuse'] as const) {
        for (const fingerprint of ['f', 'g']) {
          const { reply } = machine.begin(record, claimOf({ unknownOutcome, fingerprint }), NOW)
          const attempt = RECORDS[name].attempt + 1
          expect(reply).toEqual({ acquired: true, attempt, previousOutcome: 'failed' })
        }
      }
    },
  )

  test.each(RESOLVABLE)('%s: as completed it is never claimed, by either policy', (name) => {
    const { record } = machine.resolve(RECORDS[name], resolutionOf(RECORDS[name], { answer: ANSWER }), NOW)
    for (const unknownOutcome of ['rerun', 'refuse'] as const) {
      for (const token of ['owner', 'other', 'operator']) {
        const { reply } = machine.begin(record, claimOf({ unknownOutcome, token }), NOW)
        expect(reply).toMatchObject({ acquired: false, record: { state: 'completed', answer: ANSWER } })
      }
    }
  })
})

test('no command changes the record that it is given, and no reply shows a token', () => {
  for (const name of NAMES) {
    const before = structuredClone(RECORDS[name])
    const replies = [
      machine.inspect(RECORDS[name], NOW).reply,
      ...ANSWERS.map((answer) => machine.resolve(RECORDS[name], resolutionOf(RECORDS[name], { answer }), NOW).reply),
    ]
    expect(RECORDS[name]).toEqual(before)
    expect(JSON.stringify(replies)).not.toMatch(/owner|operator/)
  }
})
