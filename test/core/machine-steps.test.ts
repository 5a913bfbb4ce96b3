import { machine, type Ownership, type StepChange, type StoredStep } from 'once-per-key/core'
import { describe, expect, test } from 'vitest'
import {
  ANSWER,
  claimOf,
  FAILED_MS,
  LEASE_MS,
  NAMES,
  NOW,
  ownOf,
  RECORDS,
  RETENTION_MS,
  type RecordName,
  type StoredRecord,
  shown,
} from '../support/machine-records.js'

const BYTES = Uint8Array.of(7)
const DONE: StoredStep = { label: 'charge', state: 'done', order: 2, result: BYTES }
const BEGUN: StoredStep = { label: 'ship', state: 'begun', order: 3, result: null }
const UNDONE: StoredStep = { label: 'mail', state: 'undone', order: 5, result: null }
const STEPS = [DONE, BEGUN, UNDONE]
const TOLD = [
  { label: 'charge', state: 'done', result: BYTES },
  { label: 'ship', state: 'begun', result: null },
]

const step = (stored: StoredRecord | null, own: Partial<Ownership & StepChange>) =>
  machine.step(
    stored,
    { ...ownOf(), leaseMs: LEASE_MS, label: 'ship', order: 9, state: 'done', result: BYTES, ...own },
    NOW,
  )

const withSteps = (name: RecordName, steps: readonly StoredStep[] = STEPS) =>
  ({ ...RECORDS[name], steps }) as Extract<StoredRecord, { state: 'in-flight' | 'failed' }>

describe('step', () => {
  const cells = NAMES.flatMap((name) =>
    (['begun', 'done', 'undone'] as const).map((state) => ({ name, state, is: RECORDS[name].state })),
  )

  test.each(cells.filter(({ is }) => is === 'in-flight'))('$state on its own, $name: recorded and renewed', (cell) => {
    const stored = RECORDS[cell.name] as StoredRecord
    const { record, reply } = step(stored, {
      state: cell.state,
      attempt: 8,
      fingerprint: 'said',
      uncertain: true,
    })
    expect(reply).toEqual({ ok: true })
    const result = cell.state === 'done' ? BYTES : null
    expect(record).toEqual({
      ...stored,
      leaseUntil: NOW + LEASE_MS,
      expiresAt: NOW + RETENTION_MS,
      steps: [{ label: 'ship', state: cell.state, order: 9, result }],
    })
  })

  test.each(cells.filter(({ is }) => is === 'completed'))('$state on its own, $name', ({ name, state }) => {
    const stored = RECORDS[name]
    const { record, reply } = step(stored, { state })
    expect(reply).toEqual(state === 'begun' ? { ok: false, record: shown(stored) } : { ok: true })
    expect(record).toBe(stored)
  })

  test.each(cells.filter(({ is }) => is === 'failed'))('$state on its own, $name: stale', ({ name, state }) => {
    const stored = RECORDS[name]
    const { record, reply } = step(stored, { state })
    expect(reply).toEqual({ ok: false, record: shown(stored) })
    expect(record).toBe(stored)
  })

  test.each(cells)("$state on another's, $name: stale", ({ name, state }) => {
    const stored = RECORDS[name]
    const { record, reply } = step(stored, { state, token: 'stranger', fingerprint: 'g' })
    expect(reply).toEqual({ ok: false, record: shown(stored, 'g') })
    expect(record).toBe(stored)
  })

  test.each([null, { ...RECORDS.completed, expiresAt: NOW }])('on none restores the claim with it', (none) => {
    const { record, reply } = step(none, { uncertain: true })
    expect(reply).toEqual({ ok: true, restored: true })
    expect(record).toEqual({
      state: 'in-flight',
      token: 'owner',
      fingerprint: 'f',
      attempt: 3,
      uncertain: true,
      leaseUntil: NOW + LEASE_MS,
      expiresAt: NOW + RETENTION_MS,
      steps: [{ label: 'ship', state: 'done', order: 9, result: BYTES }],
    })
  })

  test('one that arrives behind a later one for its label changes nothing', () => {
    const stored = withSteps('in-flight, lease live')
    const { record, reply } = step(stored, { label: 'mail', order: 4, state: 'begun' })
    expect(reply).toEqual({ ok: true })
    expect(record).toBe(stored)
  })

  test('one that is sent again changes no step', () => {
    const stored = withSteps('in-flight, lease live')
    expect(step(stored, { label: 'charge', order: 2 }).record).toMatchObject({ steps: STEPS })
  })

  test.each(['begun', 'undone', 'done'] as const)('%s changes no recorded result, whatever its order', (state) => {
    const stored = withSteps('in-flight, lease live')
    const { record, reply } = step(stored, { label: 'charge', state, result: Uint8Array.of(8) })
    expect(reply).toEqual({ ok: true })
    expect(record).toBe(stored)
  })

  test('an order counts for its own label', () => {
    const { record } = step(withSteps('in-flight, lease live'), { label: 'bill', order: 1 })
    expect(record).toMatchObject({ steps: [...STEPS, { label: 'bill', order: 1 }] })
  })
})

describe('begin', () => {
  const UNKNOWN = NAMES.filter(
    (name) => RECORDS[name].state !== 'completed' && !/live|certain$|never/.test(name),
  ).concat('failed, uncertain')

  test.each(UNKNOWN)('of another, on %s with steps, takes them over, and forgets what was taken back', (name) => {
    const { record, reply } = machine.begin(withSteps(name), claimOf(), NOW)
    expect(reply).toMatchObject({ acquired: true, previousOutcome: 'unknown', steps: TOLD })
    expect(record).toMatchObject({
      steps: [
        { ...DONE, order: 0 },
        { ...BEGUN, order: 0 },
      ],
    })
  })

  test('an owner counts its orders anew: its first change applies', () => {
    const { record } = machine.begin(withSteps('failed, uncertain'), claimOf(), NOW)
    const next = step(record, { token: 'other', order: 1 })
    expect(next.record).toMatchObject({ steps: [{ label: 'charge' }, { label: 'ship', state: 'done', order: 1 }] })
  })

  test('that is sent again gets the steps again, and changes none', () => {
    const { record, reply } = machine.begin(withSteps('in-flight, lease live'), claimOf({ token: 'owner' }), NOW)
    expect(reply).toMatchObject({ acquired: true, attempt: 3, steps: TOLD })
    expect(record).toMatchObject({ steps: STEPS })
  })

  test('that is refused is shown no step', () => {
    const { reply } = machine.begin(withSteps('in-flight, lease live'), claimOf(), NOW)
    expect(reply).toEqual({ acquired: false, record: shown(RECORDS['in-flight, lease live']) })
  })
})

describe('steps are', () => {
  const own = { ...ownOf(), leaseMs: LEASE_MS, failedMs: FAILED_MS, answer: ANSWER }
  const stored = withSteps('in-flight, lease live')

  test('kept by a renewal', () => {
    expect(machine.renew(stored, own, NOW).record).toMatchObject({ steps: STEPS })
  })

  test('kept by a failure that leaves the outcome unknown', () => {
    expect(machine.release(stored, { ...own, uncertain: true }, NOW).record).toMatchObject({ steps: STEPS })
  })

  test.each(['complete', 'release'] as const)('dropped by %s', (command) => {
    expect(machine[command](stored, own, NOW).record).not.toHaveProperty('steps')
  })

  test('dropped by an expiry', () => {
    const { record, reply } = machine.begin({ ...stored, expiresAt: NOW }, claimOf(), NOW)
    expect(reply).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
    expect(record).not.toHaveProperty('steps')
  })

  test.each([ANSWER, null])('dropped by an operator who resolves', (answer) => {
    const resolution = { token: 'operator', attempt: 3, answer, retentionMs: 1 }
    expect(machine.resolve(withSteps('failed, uncertain'), resolution, NOW).record).not.toHaveProperty('steps')
  })

  test('shown by inspect without their results, and by no other command', () => {
    const { reply } = machine.inspect(withSteps('failed, uncertain'), NOW)
    const steps = TOLD.map(({ label, state }) => ({ label, state }))
    expect(reply).toEqual({ ...shown(RECORDS['failed, uncertain']), steps })
    expect(machine.peek(withSteps('failed, uncertain'), NOW).reply).toEqual(shown(RECORDS['failed, uncertain']))
  })
})

describe('resolve, to rerun', () => {
  const resolution = { token: 'operator', attempt: 3, answer: null, retentionMs: RETENTION_MS, rerun: true }
  const { record, reply } = machine.resolve(withSteps('failed, uncertain'), resolution, NOW)

  test('marks the record, with its steps, and fences its owner', () => {
    expect(reply).toEqual({ ok: true })
    expect(record).toEqual({
      state: 'failed',
      token: 'operator',
      fingerprint: 'f',
      attempt: 3,
      uncertain: true,
      expiresAt: NOW + RETENTION_MS,
      steps: [
        { ...DONE, order: 0 },
        { ...BEGUN, order: 0 },
      ],
      rerun: true,
    })
    expect(machine.inspect(record, NOW).reply).toMatchObject({ rerun: true })
    expect(step(record, {}).reply).toMatchObject({ ok: false })
  })

  test('sent again changes nothing', () => {
    expect(machine.resolve(record, resolution, NOW)).toEqual({ record, reply: { ok: true } })
  })

  test('lets the next claim with its fingerprint go on, and clears the mark', () => {
    const claim = claimOf({ unknownOutcome: 'refuse' })
    const next = machine.begin(record, claim, NOW)
    expect(next.reply).toMatchObject({ acquired: true, attempt: 4, previousOutcome: 'unknown', steps: TOLD })
    expect(next.record).not.toHaveProperty('rerun')
    const failed = machine.release(next.record, { ...ownOf({ token: 'other', uncertain: true }), failedMs: 1 }, NOW)
    expect(machine.begin(failed.record, { ...claim, token: 'third' }, NOW).reply).toMatchObject({ acquired: false })
  })

  test('lets no other request in', () => {
    expect(machine.begin(record, claimOf({ fingerprint: 'g' }), NOW).reply).toMatchObject({ acquired: false })
  })

  test.each(['in-flight, lease live', 'completed', 'failed, certain'] as const)('on %s is stale', (name) => {
    expect(machine.resolve(RECORDS[name], resolution, NOW).record).toBe(RECORDS[name])
  })
})
