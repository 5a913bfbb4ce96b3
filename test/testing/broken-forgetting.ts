import { machine, toListedRecord } from 'once-per-key/core'
import { type BrokenStore, broken } from './broken-steps.js'

const { forget } = machine

/** One mistake each in what is forgotten. */
export const BROKEN_FORGETTING: readonly BrokenStore[] = [
  broken('an answer that was to be forgotten is kept', ['forget (completed): ok', 'listScope: shows the answer'], {
    forget: (record, forgetting, now) => ({ ...forget(record, forgetting, now), record }),
  }),
  broken('what runs is forgotten', ['forget, removing (in-flight, lease live): stale'], {
    forget: (record, forgetting, now) =>
      forgetting.removes ? { record: null, reply: { ok: true } } : forget(record, forgetting, now),
  }),
  broken('an unknown outcome is forgotten', ['forget, removing (failed, uncertain): stale'], {
    forget: (record, forgetting, now) =>
      forget(record?.state === 'failed' ? { ...record, uncertain: false } : record, forgetting, now),
  }),
  broken('another record than was looked at is forgotten', ['forget (completed) of another attempt: stale'], {
    forget: (record, forgetting, now) =>
      forget(record, { ...forgetting, attempt: record?.attempt ?? forgetting.attempt }, now),
  }),
  broken('a request of another fingerprint is forgotten', ['forget (completed) of another fingerprint: stale'], {
    forget: (record, forgetting, now) =>
      forget(record, { ...forgetting, fingerprint: record?.fingerprint ?? forgetting.fingerprint }, now),
  }),
  broken('a forgotten key is free', ['forget: a forgotten key is never claimed again'], {
    forget: (record, forgetting, now) => forget(record, { ...forgetting, removes: true }, now),
  }),
  broken('a removed key is kept', ['forget, removing (completed): ok'], {
    forget: (record, forgetting, now) => forget(record, { ...forgetting, removes: false }, now),
  }),
  broken('a forgotten record ends early', ['forget: does not shorten the retention'], {
    forget: (record, forgetting, now) => lasting(forget(record, forgetting, now), now + 1),
  }),
  broken('a forgotten record lasts', ['forget: keeps the rest of the retention'], {
    forget: (record, forgetting, now) => lasting(forget(record, forgetting, now), 1e12),
  }),
  broken('a walk shows answers', ['listScope (completed): shows the record without its answer'], {
    listed: (record, now) => {
      const shown = toListedRecord(record, now)
      const { reply } = machine.inspect(record, now)
      return shown && reply && { ...shown, record: reply }
    },
  }),
  broken('a walk shows what has expired', ['listScope: skips expired records'], {
    listed: (record, now) => toListedRecord(record && { ...record, expiresAt: now + 1 }, now),
  }),
  broken('a walk shows the retention in seconds', ['listScope: shows the rest of the retention'], {
    listed: (record, now) => {
      const shown = toListedRecord(record, now)
      return shown && { ...shown, retentionRemainingMs: shown.retentionRemainingMs / 1_000 }
    },
  }),
  broken('a walk leaves out what is completed', ['listScope (completed)', 'listScope: shows the answer'], {
    listed: (record, now) => (record?.state === 'completed' ? null : toListedRecord(record, now)),
  }),
]

function lasting<Reply>(step: machine.Change<Reply>, expiresAt: number): machine.Change<Reply> {
  return { ...step, record: step.record && { ...step.record, expiresAt } }
}
