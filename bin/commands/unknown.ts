import type { UnknownOutcome } from 'once-per-key/core'
import { type CommandLine, countIn } from '../command-line.js'
import { operatorOf } from '../operator.js'
import { inWords, printJson, printTable } from '../printed.js'
import { type Target, tellPrefix } from '../target.js'

const USUAL_LIMIT = 1_000

/** Lists what awaits an operator, the oldest first. Keeps no more of it than is shown, however much there is. */
export async function unknown({ options }: CommandLine, target: Target): Promise<number> {
  const limit = countIn(options, 'limit') ?? USUAL_LIMIT
  const names = new Set<string>()
  let kept: UnknownOutcome[] = []
  for await (const found of operatorOf(target.store).unknown()) {
    names.add(JSON.stringify([found.namespace, found.scope, found.key])) // A walk may come across one twice.
    kept.push(found)
    if (kept.length >= 2 * limit) kept = oldest(kept, limit)
  }
  const shown = oldest(kept, limit)
  if (shown.length === 0) tellPrefix(target, options)
  if (options.json) {
    printJson({ total: names.size, records: shown.map(({ record, ...name }) => ({ ...name, ...record })) })
    return 0
  }
  if (shown.length > 0) printTable(TITLES, shown.map(rowOf))
  console.log(
    names.size === 0
      ? 'Nothing awaits an operator.'
      : `${names.size} in all${names.size > limit ? `, the oldest ${limit} shown` : ''}.`,
  )
  return 0
}

const TITLES = ['namespace', 'scope', 'key', 'attempt', 'what happened', 'kept for']

function rowOf({ namespace = '', scope, key, record, retentionRemainingMs }: UnknownOutcome): string[] {
  const what =
    record.state === 'in-flight'
      ? `its owner has been silent for ${inWords(-record.leaseRemainingMs)} past its lease`
      : 'it failed, and may have had its effect'
  return [namespace, scope, key, `${record.attempt}`, what, inWords(retentionRemainingMs)]
}

function oldest(found: readonly UnknownOutcome[], limit: number): UnknownOutcome[] {
  const byName = new Map(found.map((each) => [JSON.stringify([each.namespace, each.scope, each.key]), each]))
  return [...byName.values()].sort((a, b) => a.retentionRemainingMs - b.retentionRemainingMs).slice(0, limit)
}
