import { requireStoreCommand } from '../calls/store-calls.js'
import { describeKind, IdempotencyError } from '../errors.js'
import {
  createExpiredRefusal,
  createUnavailableRefusal,
  explainNotRun,
  isMismatch,
  type NotRun,
} from '../events/refusal.js'
import { isThenable, type MaybePromise, whenever } from '../maybe-promise.js'
import { computeLongestRepeatMs, type RepeatOptions } from '../options/engine-options.js'
import { findFirstSentFault, type Identity } from '../record/identity.js'
import type { IdempotencyRecord } from '../record/record.js'
import type { CoreParts } from '../run/core-parts.js'
import type { Run } from '../run/run.js'

/**
 * Whether the record of an operation may be gone, because it was first sent too long ago. Then it must not be claimed: its
 * key would look new.
 */
export function isLate({ firstSent }: Identity, options: RepeatOptions): boolean {
  return firstSent !== undefined && Date.now() - firstSent.getTime() > computeLongestRepeatMs(options)
}

/** What became of an operation that is late: its answer or a mismatch, if its record is still there. Changes nothing. */
export function findLateOutcome(
  operation: Run,
  core: CoreParts,
): MaybePromise<InspectedRecord & { readonly notRun: NotRun }> {
  const { calls, options } = core
  const inspect = requireStoreCommand(options.store, 'inspect')
  const send = () => {
    const record = inspect(operation.recordKey)
    return isThenable(record) ? record.then((later) => ({ record: later })) : { record }
  }
  return whenever(calls.ask<InspectedRecord>('inspect', operation, send).waitForReply(), (reply) => {
    if (reply === null) return { notRun: createUnavailableRefusal(options), record: null }
    const { record } = reply
    const notRun = record === null ? createExpiredRefusal() : explainNotRun(record, operation.identity, options)
    const isTold = record?.state === 'completed' || isMismatch(notRun)
    return { notRun: isTold ? notRun : createExpiredRefusal(), record }
  })
}

interface InspectedRecord {
  readonly record: IdempotencyRecord | null
}

/** @throws IdempotencyError `arguments_invalid`, `command_missing`: nothing was sent. */
export function assertFirstSent(firstSent: unknown, options: CoreParts['options']): void {
  requireStoreCommand(options.store, 'inspect')
  const fault = describeFirstSentFault(firstSent, options)
  if (fault === null) return
  throw new IdempotencyError(
    'arguments_invalid',
    `\`firstSent\` cannot be used: ${fault}. It says when the operation was first sent, as a Date: never when this attempt ` +
      'was. Nothing was sent to the store.',
  )
}

function describeFirstSentFault(firstSent: unknown, options: CoreParts['options']): string | null {
  if (!(firstSent instanceof Date)) return `it is ${describeKind(firstSent)}, not a Date`
  if (computeLongestRepeatMs(options) <= 0)
    return 'the retention is not longer than `clockSkewMs`, so all would have expired'
  return findFirstSentFault(firstSent, options.clockSkewMs)
}
