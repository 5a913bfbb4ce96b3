import type { CommandLine } from '../command-line.js'
import { walkStorageKeys } from '../keys.js'
import { createOperatorCommands } from '../operator.js'
import { printFacts, printJson } from '../printed.js'
import { printPrefixNotice, type Target } from '../target.js'

export async function runStats({ options }: CommandLine, target: Target): Promise<number> {
  const unknown = { 'in-flight': 0, failed: 0 }
  for await (const { record } of createOperatorCommands(target.store).unknown()) {
    if (record.state !== 'completed') unknown[record.state]++
  }
  let records = 0
  for await (const keys of walkStorageKeys(target)) records += keys.length
  const counted = {
    records,
    unknownOutcomes: unknown['in-flight'] + unknown.failed,
    ownersLost: unknown['in-flight'],
    failedPerhaps: unknown.failed,
  }
  if (records === 0) printPrefixNotice(target)
  if (options.json) printJson(counted)
  else
    printFacts({
      records: counted.records,
      'whose outcome is unknown': counted.unknownOutcomes,
      '  since an owner was lost': counted.ownersLost,
      '  since it failed, perhaps after its effect': counted.failedPerhaps,
    })
  return 0
}
