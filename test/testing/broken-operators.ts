import { machine } from 'once-per-key/core'
import { type BrokenStore, broken } from './broken-steps.js'

type StoredRecord = machine.StoredRecord

/** One mistake each in what an operator does to a record. */
export const BROKEN_OPERATORS: readonly BrokenStore[] = [
  broken('inspect shows no lapse', ['inspect (in-flight, lease lapsed): shows the record'], {
    inspect: (record, now) => machine.inspect(withLease(record, now + 1), now),
  }),
  broken('inspect keeps a lease alive', ['inspect (in-flight, lease lapsed)', 'inspect: changes neither lease'], {
    inspect: (record, now) => ({ ...machine.inspect(record, now), record: withLease(record, now + 1_000_000) }),
  }),
  broken('inspect keeps a record alive', ['inspect: changes neither lease nor retention'], {
    inspect: (record, now) => ({ ...machine.inspect(record, now), record: record && { ...record, expiresAt: 1e12 } }),
  }),
  broken('inspect takes the record', ['inspect (completed): shows the record'], {
    inspect: (record, now) => ({ ...machine.inspect(record, now), record: record && { ...record, token: 'looker' } }),
  }),
  broken('a live lease is resolved', ['resolve as failed (in-flight, lease live): stale'], {
    resolve: (record, resolution, now) => machine.resolve(withLease(record, now), resolution, now),
  }),
  broken('a completed record is resolved', ['resolve as failed (completed): stale'], {
    resolve: (record, resolution, now) => machine.resolve(asUncertain(record, 'completed'), resolution, now),
  }),
  broken('a certain failure is resolved', ['resolve as completed (failed, certain): stale'], {
    resolve: (record, resolution, now) => machine.resolve(asUncertain(record, 'failed'), resolution, now),
  }),
  broken('a lapsed claim is not resolved', ['resolve as failed (in-flight, lease lapsed): ok'], {
    resolve: (record, resolution, now) => machine.resolve(withLease(record, now + 1), resolution, now),
  }),
  broken('a resolution writes where there is nothing', ['resolve as completed (none): stale'], {
    resolve: (record, resolution, now) => {
      const none: StoredRecord = { ...NONE, attempt: resolution.attempt, expiresAt: now + 1_000 }
      return machine.resolve(record ?? none, resolution, now)
    },
  }),
  broken(
    'the attempt that was looked at is ignored',
    ['resolve (in-flight, lease lapsed) of the attempt before', 'resolve: a repetition after a later attempt'],
    {
      resolve: (record, resolution, now) =>
        machine.resolve(record, { ...resolution, attempt: record?.attempt ?? 0 }, now),
    },
  ),
  broken('a resolution counts as an attempt', ['resolve as failed (failed, uncertain): ok'], {
    resolve: (record, resolution, now) => changed(record, machine.resolve(record, resolution, now), 1),
  }),
  broken('a resolution leaves the record to its owner', ['resolve as completed (in-flight, lease lapsed): ok'], {
    resolve: (record, resolution, now) => machine.resolve(record, { ...resolution, token: record?.token ?? '' }, now),
  }),
  broken('a resolution as failed leaves it uncertain', ['resolve: as failed frees the key'], {
    resolve: (record, resolution, now) => {
      const step = machine.resolve(record, resolution, now)
      return { ...step, record: asUncertain(step.record, 'failed') }
    },
  }),
  broken('to be rerun is failed', ['resolve as to be rerun (failed, uncertain): ok', 'resolve: to be rerun lets'], {
    resolve: (record, resolution, now) => machine.resolve(record, { ...resolution, rerun: false }, now),
  }),
  broken('to be rerun is confirmed, and nothing else', ['resolve: to be rerun lets the next claim go on once'], {
    resolve: (record, resolution, now) =>
      resolution.rerun === true ? { record, reply: { ok: true } } : machine.resolve(record, resolution, now),
  }),
  broken('what is to be rerun is free for every request', ['resolve: to be rerun lets the next claim go on once'], {
    begin: (record, claim, now) =>
      machine.begin(isMarked(record) ? { ...record, fingerprint: claim.fingerprint } : record, claim, now),
  }),
  broken('what is to be rerun is told as a failure', ['resolve: to be rerun lets the next claim go on once'], {
    begin: (record, claim, now) =>
      machine.begin(isMarked(record) ? { ...record, uncertain: false } : record, claim, now),
  }),
  broken('the mark outlives its claim', ['resolve: to be rerun lets the next claim go on once'], {
    begin: (record, claim, now) => machine.begin(record, { ...claim, unknownOutcome: wasMarked(record, claim) }, now),
  }),
  broken('what is to be rerun begins anew', ['resolve: to be rerun keeps the steps'], {
    resolve: (record, resolution, now) =>
      machine.resolve(resolution.rerun === true ? withoutSteps(record) : record, resolution, now),
  }),
  broken('a resolution hands the steps on', ['resolve: as failed drops the steps'], {
    resolve: (record, resolution, now) => {
      const { record: next, reply } = machine.resolve(record, resolution, now)
      const steps = record?.state === 'failed' ? record.steps : undefined
      return { record: next?.state === 'failed' && steps ? { ...next, steps } : next, reply }
    },
  }),
  broken('inspect shows no mark', ['resolve: to be rerun lets the next claim go on once'], {
    inspect: (record, now) =>
      machine.inspect(isMarked(record) ? { ...record, rerun: undefined as never } : record, now),
  }),
  broken('inspect shows no steps', ['inspect: shows the labels and states'], {
    inspect: (record, now) => machine.peek(record, now),
  }),
  broken('inspect shows the results of steps', ['inspect: shows the labels and states'], {
    inspect: (record, now) => {
      const seen = machine.inspect(record, now)
      const steps = record?.state === 'in-flight' ? record.steps : undefined
      const reply = seen.reply && steps ? { ...seen.reply, steps } : seen.reply
      return { record, reply: reply as typeof seen.reply }
    },
  }),
  broken('a resolution that is sent again is refused', ['resolve: a repetition is confirmed'], {
    resolve: (record, resolution, now) =>
      machine.resolve(record, { ...resolution, token: `${resolution.token} at ${now} behind ${record?.token}` }, now),
  }),
  broken('a resolution that is sent again replaces the first', ['resolve: a repetition is confirmed'], {
    resolve: (record, resolution, now) =>
      record?.token === resolution.token
        ? machine.resolve({ ...record, ...LAPSED, token: '' }, { ...resolution, attempt: record.attempt }, now)
        : machine.resolve(record, resolution, now),
  }),
  broken(
    'the answer of a resolution is lost',
    ['resolve: the answer is kept', 'resolve as completed (failed, uncertain)'],
    {
      resolve: (record, { answer, ...rest }, now) =>
        machine.resolve(record, { ...rest, answer: answer && { ...answer, body: null } }, now),
    },
  ),
  broken('a resolution keeps nothing longer', ['resolve: restarts the retention of the record'], {
    resolve: (record, resolution, now) => machine.resolve(record, { ...resolution, retentionMs: 0 }, now),
  }),
  broken('a resolution shortens the retention', ['resolve: never shortens the retention of the record'], {
    resolve: (record, resolution, now) => machine.resolve(record && { ...record, expiresAt: now + 1 }, resolution, now),
  }),
  broken('a resolution keeps the record for ever', ['resolve: after its retention the key is new'], {
    resolve: (record, resolution, now) => machine.resolve(record, { ...resolution, retentionMs: 1e12 }, now),
  }),
]

const LAPSED = { state: 'in-flight', fingerprint: 'a', uncertain: true, leaseUntil: 0 } as const
const NONE = { ...LAPSED, token: '' } as const

function withLease(record: StoredRecord | null, leaseUntil: number): StoredRecord | null {
  return record?.state === 'in-flight' ? { ...record, leaseUntil } : record
}

function asUncertain(record: StoredRecord | null, state: StoredRecord['state']): StoredRecord | null {
  if (record?.state !== state) return record
  const { token, attempt, expiresAt } = record
  return { state: 'failed', fingerprint: record.fingerprint ?? 'a', uncertain: true, token, attempt, expiresAt }
}

function changed<Reply>(
  before: StoredRecord | null,
  step: machine.Change<Reply>,
  attempts: number,
): machine.Change<Reply> {
  if (step.record === before || step.record === null) return step
  return { ...step, record: { ...step.record, attempt: step.record.attempt + attempts } }
}

type Failed = Extract<StoredRecord, { state: 'failed' }>

function isMarked(record: StoredRecord | null): record is Failed {
  return record?.state === 'failed' && record.rerun === true
}

/** As if the mark of attempt 1 were still there. */
function wasMarked(record: StoredRecord | null, { unknownOutcome }: { unknownOutcome: 'rerun' | 'refuse' }) {
  return record !== null && record.attempt > 1 ? 'rerun' : unknownOutcome
}

function withoutSteps(record: StoredRecord | null): StoredRecord | null {
  return record?.state === 'failed' ? { ...record, steps: [] } : record
}
