import type { IdempotencyRecord, ScopeRecord } from 'once-per-key/core'
import { describeNoRecords } from '../asking.js'
import { type CommandLine, UsageError } from '../command-line.js'
import { type Columns, collectOldest, printOldest } from '../oldest.js'
import { createEngine } from '../operator.js'
import { formatDuration, printJson } from '../printed.js'
import { printPrefixNotice, type Target } from '../target.js'
import { describeMeaning, toOperatorsRecord } from './inspect.js'

/** Lists the records of a scope, the oldest first: also which answers `forget` would erase. */
export async function runList({ options }: CommandLine, target: Target): Promise<number> {
  const { scope, namespace, json } = options
  if (scope === undefined || scope === '') {
    throw new UsageError('Say whose records: once-per-key list --scope SCOPE …')
  }
  const of = { scope, ...(namespace !== undefined && { namespace }) }
  const { total, shown } = await collectOldest(createEngine(target.store).listScopeRecords(of), options)
  if (total === 0) printPrefixNotice(target)
  if (json) printJson({ total, records: shown.map(toListedRecordJson) })
  else if (total === 0) console.log(describeNoRecords(of))
  else printOldest(COLUMNS, total, shown)
  return shown.some(({ record }) => record === null) ? 1 : 0
}

const COLUMNS: Columns<ScopeRecord> = [
  ['key', ({ key }) => key],
  ['path', ({ path = '' }) => path],
  ['attempt', ({ record }) => `${record?.attempt ?? ''}`],
  [
    'means',
    ({ record }) =>
      record === null ? 'it could not be read' : hasAnswer(record) ? HAS_ANSWER : describeMeaning(record),
  ],
  [
    'kept for',
    ({ retentionRemainingMs }) => (retentionRemainingMs === null ? '' : formatDuration(retentionRemainingMs)),
  ],
]

const HAS_ANSWER = 'it succeeded; forget would erase its answer'

/** A walk shows an answer that is kept as `null`, and one of which nothing is kept as that. */
function hasAnswer(record: IdempotencyRecord): boolean {
  return record.state === 'completed' && record.answer === null
}

function toListedRecordJson({ record, retentionRemainingMs, ...name }: ScopeRecord): object {
  if (record === null) return { ...name, state: 'unreadable' }
  if (record.state !== 'completed') return { ...name, ...toOperatorsRecord(record), retentionRemainingMs }
  const { answer: _, ...shown } = record
  return { ...name, ...shown, hasAnswer: hasAnswer(record), retentionRemainingMs }
}
