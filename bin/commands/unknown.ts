import type { UnknownOutcome } from 'once-per-key/core'
import type { CommandLine } from '../command-line.js'
import { type Columns, collectOldest, printOldest } from '../oldest.js'
import { createOperatorCommands } from '../operator.js'
import { formatDuration, printJson } from '../printed.js'
import { printPrefixNotice, type Target } from '../target.js'
import { toOperatorsRecord } from './inspect.js'

/** Lists what awaits an operator, the oldest first. */
export async function runUnknown({ options }: CommandLine, target: Target): Promise<number> {
  const { total, shown } = await collectOldest(createOperatorCommands(target.store).unknown(), options)
  // Mostly nothing is there to be told of, and a job that looks each night knows its prefix.
  if (shown.length === 0 && options.prefix === undefined) printPrefixNotice(target)
  if (options.json) {
    printJson({ total, records: shown.map(({ record, ...name }) => ({ ...name, ...toOperatorsRecord(record) })) })
    return 0
  }
  if (total === 0)
    console.log('Nothing awaits an operator. The run of an owner that died is listed once its lease has ended.')
  else printOldest(COLUMNS, total, shown)
  return 0
}

const COLUMNS: Columns<UnknownOutcome> = [
  ['namespace', ({ namespace = '' }) => namespace],
  ['scope', ({ scope }) => scope],
  ['key', ({ key }) => key],
  ['path', ({ path = '' }) => path],
  ['attempt', ({ record }) => `${record.attempt}`],
  ['what happened', describeUnknownOutcome],
  ['kept for', ({ retentionRemainingMs }) => formatDuration(retentionRemainingMs)],
]

function describeUnknownOutcome({ record }: UnknownOutcome): string {
  return record.state === 'in-flight'
    ? `its owner has been silent for ${formatDuration(-record.leaseRemainingMs)} past its lease`
    : 'it failed, and may have had its effect'
}
