import { machine, type Ownership } from 'once-per-key/core'
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

describe('begin', () => {
  const NEW = { attempt: 1, previousOutcome: 'none' }
  const FOURTH_FAILED = { attempt: 4, previousOutcome: 'failed' }
  const FOURTH_UNKNOWN = { attempt: 4, previousOutcome: 'unknown' }
  const AGAIN = { attempt: 3, previousOutcome: 'failed' }
  const AGAIN_UNKNOWN = { attempt: 3, previousOutcome: 'unknown' }

  type Acquired = { readonly attempt: number; readonly previousOutcome: string }
  /** By the record's own token; by another with its fingerprint, that reruns or refuses; with another fingerprint. */
  const TABLE: Record<
    RecordName,
    readonly [own: Acquired | null, rerun: Acquired | null, refuse: Acquired | null, other: Acquired | null]
  > = {
    'in-flight, lease live': [AGAIN, null, null, null],
    'in-flight, uncertain, lease live': [AGAIN_UNKNOWN, null, null, null],
    'in-flight, lapsed at this instant': [AGAIN, FOURTH_UNKNOWN, null, null],
    'in-flight, lapsed long ago': [AGAIN, FOURTH_UNKNOWN, null, null],
    'in-flight, uncertain, lapsed': [AGAIN_UNKNOWN, FOURTH_UNKNOWN, null, null],
    'in-flight, first attempt, lapsed': [NEW, { attempt: 2, previousOutcome: 'unknown' }, null, null],
    completed: [null, null, null, null],
    'completed, answer not kept': [null, null, null, null],
    'failed, certain': [null, FOURTH_FAILED, FOURTH_FAILED, FOURTH_FAILED],
    'failed, never confirmed': [null, NEW, NEW, NEW],
    'failed, uncertain': [null, FOURTH_UNKNOWN, null, null],
  }
  const ASKERS = [
    ['its own token', claimOf({ token: 'owner' })],
    ['another token', claimOf()],
    ['another token that refuses unknown outcomes', claimOf({ unknownOutcome: 'refuse' })],
    ['another token with another fingerprint', claimOf({ fingerprint: 'g' })],
  ] as const

  const cells = NAMES.flatMap((name) =>
    ASKERS.map(([asker, claim], column) => ({ name, asker, claim, due: TABLE[name][column] ?? null })),
  )
  const claiming = cells.filter((cell) => cell.due !== null)
  const refusing = cells.filter((cell) => cell.due === null)

  test.each(claiming)('on $name by $asker acquires: $due', ({ name, claim, due }) => {
    const { record, reply } = machine.begin(RECORDS[name], claim, NOW)
    expect(reply).toEqual({ acquired: true, ...due })
    expect(record).toEqual({
      state: 'in-flight',
      token: claim.token,
      fingerprint: claim.fingerprint,
      attempt: due?.attempt,
      uncertain: due?.previousOutcome === 'unknown',
      leaseUntil: NOW + LEASE_MS,
      expiresAt: NOW + RETENTION_MS,
    })
  })

  test.each(refusing)('on $name by $asker is not acquired and changes nothing', ({ name, claim }) => {
    const stored = RECORDS[name]
    const { record, reply } = machine.begin(stored, claim, NOW)
    expect(reply).toEqual({ acquired: false, record: shown(stored, claim.fingerprint) })
    expect(record).toBe(stored)
  })

  test('covers every cell', () => {
    expect(claiming.length + refusing.length).toBe(NAMES.length * 4)
  })

  test.each(['rerun', 'refuse'] as const)('on none acquires attempt 1 (%s)', (unknownOutcome) => {
    const { record, reply } = machine.begin(null, claimOf({ unknownOutcome }), NOW)
    expect(reply).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
    expect(record).toEqual({
      state: 'in-flight',
      token: 'other',
      fingerprint: 'f',
      attempt: 1,
      uncertain: false,
      leaseUntil: NOW + LEASE_MS,
      expiresAt: NOW + RETENTION_MS,
    })
  })

  test.each(NAMES)('on %s that expires at this instant finds none', (name) => {
    for (const [, claim] of ASKERS) {
      const { reply } = machine.begin({ ...RECORDS[name], expiresAt: NOW }, claim, NOW)
      expect(reply).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
    }
  })

  test.each(NAMES)('on %s that expires an instant later finds it', (name) => {
    const claim = claimOf({ unknownOutcome: 'refuse', fingerprint: 'g' })
    const last = machine.begin({ ...RECORDS[name], expiresAt: NOW + 1 }, claim, NOW)
    expect(last.reply).toEqual(machine.begin(RECORDS[name], claim, NOW).reply)
  })
})

type Command = 'renew' | 'complete' | 'release'

function send(command: Command, stored: StoredRecord | null, own: Ownership, answer = ANSWER) {
  switch (command) {
    case 'renew':
      return machine.renew(stored, { ...own, leaseMs: LEASE_MS }, NOW)
    case 'complete':
      return machine.complete(stored, { ...own, answer }, NOW)
    case 'release':
      return machine.release(stored, { ...own, failedMs: FAILED_MS }, NOW)
  }
}

describe("the owner's commands", () => {
  const IN_FLIGHT = { renew: 'ends', complete: 'ends', release: 'ends' } as const
  const COMPLETED = { renew: 'stale', complete: 'repeats', release: 'stale' } as const
  const FAILED = { renew: 'stale', complete: 'stale', release: 'repeats' } as const
  const TABLE: Record<RecordName, Record<Command, 'ends' | 'repeats' | 'stale'>> = {
    'in-flight, lease live': IN_FLIGHT,
    'in-flight, uncertain, lease live': IN_FLIGHT,
    'in-flight, lapsed at this instant': IN_FLIGHT,
    'in-flight, lapsed long ago': IN_FLIGHT,
    'in-flight, uncertain, lapsed': IN_FLIGHT,
    'in-flight, first attempt, lapsed': IN_FLIGHT,
    completed: COMPLETED,
    'completed, answer not kept': COMPLETED,
    'failed, certain': FAILED,
    'failed, never confirmed': FAILED,
    'failed, uncertain': FAILED,
  }
  const COMMANDS: readonly Command[] = ['renew', 'complete', 'release']
  const cells = NAMES.flatMap((name) => COMMANDS.map((command) => ({ name, command, due: TABLE[name][command] })))

  // Whatever an owner says of itself, an existing record knows better: only the token counts.
  const said = ownOf({ attempt: 8, fingerprint: 'said' })

  test.each(cells)('$command on its own, $name: $due', ({ name, command, due }) => {
    const stored = RECORDS[name]
    const { record, reply } = send(command, stored, said, OTHER_ANSWER)
    if (due === 'stale') expect(reply).toEqual({ ok: false, record: shown(stored, said.fingerprint) })
    else expect(reply).toEqual({ ok: true })
    if (due !== 'ends') return expect(record).toBe(stored)

    const { fingerprint, attempt } = stored
    const uncertain = 'uncertain' in stored && stored.uncertain
    const expiresAt = NOW + (command === 'release' && !uncertain ? FAILED_MS : RETENTION_MS)
    const written = { token: 'owner', attempt, expiresAt }
    expect(record).toEqual(
      {
        renew: { ...written, state: 'in-flight', fingerprint, uncertain, leaseUntil: NOW + LEASE_MS },
        complete: { ...written, state: 'completed', fingerprint, answer: OTHER_ANSWER },
        release: { ...written, state: 'failed', fingerprint: uncertain ? fingerprint : null, uncertain },
      }[command],
    )
  })

  test.each(cells)("$command on another's, $name: stale", ({ name, command }) => {
    const stored = RECORDS[name]
    const { record, reply } = send(command, stored, ownOf({ token: 'former', uncertain: true }), OTHER_ANSWER)
    expect(reply).toEqual({ ok: false, record: shown(stored) })
    expect(record).toBe(stored)
  })

  test.each(COMMANDS)("$command on another's with another fingerprint is not shown the answer", (command) => {
    const stored = RECORDS.completed
    const { reply } = send(command, stored, ownOf({ token: 'former', fingerprint: 'g' }), OTHER_ANSWER)
    expect(reply).toEqual({ ok: false, record: { ...shown(stored), answer: null } })
  })

  const none = [null, ...NAMES.map((name) => ({ ...RECORDS[name], expiresAt: NOW }))]
  test.each(COMMANDS.flatMap((command) => [false, true].map((uncertain) => ({ command, uncertain }))))(
    '$command where there is no record, or it expires at this instant, writes what the owner says (uncertain: $uncertain)',
    ({ command, uncertain }) => {
      for (const stored of none) {
        const { record, reply } = send(command, stored, { ...said, uncertain })
        expect(reply).toEqual(command === 'renew' ? { ok: true, restored: true } : { ok: true })
        const expiresAt = NOW + (command === 'release' && !uncertain ? FAILED_MS : RETENTION_MS)
        const written = { token: 'owner', fingerprint: 'said', attempt: 8, expiresAt }
        expect(record).toEqual(
          {
            renew: { ...written, state: 'in-flight', uncertain, leaseUntil: NOW + LEASE_MS },
            complete: { ...written, state: 'completed', answer: ANSWER },
            release: { ...written, state: 'failed', uncertain, fingerprint: uncertain ? 'said' : null },
          }[command],
        )
      }
    },
  )

  test('release adds uncertainty, binds the record and keeps it for the retention', () => {
    const { record } = send('release', RECORDS['in-flight, lease live'], ownOf({ uncertain: true }))
    const due = { state: 'failed', fingerprint: 'f', uncertain: true, expiresAt: NOW + RETENTION_MS }
    expect(record).toMatchObject(due)
  })

  test('release of a claim that was never confirmed fences its late begin', () => {
    const { record } = send('release', null, ownOf({ attempt: 0 }))
    const late = machine.begin(record, claimOf({ token: 'owner' }), NOW)
    expect(late.reply).toMatchObject({ acquired: false, record: { state: 'failed', attempt: 0 } })
    expect(late.record).toBe(record)
  })
})

describe('the state machine, row by row', () => {
  const rows: readonly [row: string, stored: StoredRecord | null, same: object, other: object][] = [
    ['none', null, { acquired: true, attempt: 1 }, { acquired: true, attempt: 1 }],
    [
      'failed, certain',
      RECORDS['failed, certain'],
      { acquired: true, attempt: 4, previousOutcome: 'failed' },
      { acquired: true, attempt: 4, previousOutcome: 'failed' },
    ],
    [
      'failed, uncertain',
      RECORDS['failed, uncertain'],
      { acquired: true, attempt: 4, previousOutcome: 'unknown' },
      { acquired: false, record: { fingerprint: 'f' } },
    ],
    [
      'in-flight, lease live',
      RECORDS['in-flight, lease live'],
      { acquired: false, record: { state: 'in-flight', leaseRemainingMs: 1 } },
      { acquired: false, record: { fingerprint: 'f' } },
    ],
    [
      'in-flight, lease lapsed',
      RECORDS['in-flight, lapsed long ago'],
      { acquired: true, attempt: 4, previousOutcome: 'unknown' },
      { acquired: false, record: { fingerprint: 'f' } },
    ],
    [
      'completed',
      RECORDS.completed,
      { acquired: false, record: { state: 'completed', answer: ANSWER } },
      { acquired: false, record: { fingerprint: 'f', answer: null } },
    ],
    [
      'completed, answer not kept',
      RECORDS['completed, answer not kept'],
      { acquired: false, record: { state: 'completed', answer: { body: null } } },
      { acquired: false, record: { fingerprint: 'f', answer: null } },
    ],
  ]

  test.each(rows)('%s: the same fingerprint and another get what the table says', (_, stored, same, other) => {
    expect(machine.begin(stored, claimOf(), NOW).reply).toMatchObject(same)
    expect(machine.begin(stored, claimOf({ fingerprint: 'g' }), NOW).reply).toMatchObject(other)
  })
})

test('no command changes the record that it is given', () => {
  for (const name of NAMES) {
    const stored = RECORDS[name]
    const before = structuredClone(stored)
    machine.begin(stored, claimOf(), NOW)
    for (const token of ['owner', 'former']) {
      for (const command of ['renew', 'complete', 'release'] as const) send(command, stored, ownOf({ token }))
    }
    expect(stored).toEqual(before)
  }
})

test('no reply shows a token', () => {
  for (const name of NAMES) {
    const replies = [
      machine.begin(RECORDS[name], claimOf({ unknownOutcome: 'refuse', fingerprint: 'g' }), NOW).reply,
      ...(['renew', 'complete', 'release'] as const).map(
        (command) => send(command, RECORDS[name], ownOf({ token: 'former' })).reply,
      ),
    ]
    expect(JSON.stringify(replies)).not.toMatch(/owner|former|other/)
  }
})
