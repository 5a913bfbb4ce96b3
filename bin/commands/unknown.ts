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
    names.add(nameOf(found)) // A walk may come across one twice.
    kept.push(found)
    if (kept.length >= 2 * limit) kept = oldest(kept, limit)
  }
  const shown = oldest(kept, limit)
  if (shown.length === 0) tellPrefix(target, options)
  if (options.json) {
    printJson({ total: names.size, records: shown.map(({ record, ...name }) => ({ ...name, ...record })) })
    return 0
  }
  const columns = shown.some(({ path }) => path !== undefined) ? COLUMNS : COLUMNS.filter(([title]) => title !== 'path')
  const rows = shown.map((each) => columns.map(([, cellOf]) => cellOf(each)))
  if (shown.length > 0)
    printTable(
      columns.map(([title]) => title),
      rows,
    )
  console.log(
    names.size === 0
      ? 'Nothing awaits an operator.'
      : `${names.size} in all${names.size > limit ? `, the oldest ${limit} shown` : ''}.`,
  )
  return 0
}

const COLUMNS: readonly (readonly [title: string, cellOf: (found: UnknownOutcome) => string])[] = [
  ['namespace', ({ namespace = '' }) => namespace],
  ['scope', ({ scope }) => scope],
  ['key', ({ key }) => key],
  ['path', ({ path = '' }) => path],
  ['attempt', ({ record }) => `${record.attempt}`],
  ['what happened', whatHappened],
  ['kept for', ({ retentionRemainingMs }) => inWords(retentionRemainingMs)],
]

function whatHappened({ record }: UnknownOutcome): string {
  return record.state === 'in-flight'
    ? `its owner has been silent for ${inWords(-record.leaseRemainingMs)} past its lease`
    : 'it failed, and may have had its effect'
}

function nameOf({ namespace, scope, key, path }: UnknownOutcome): string {
  return JSON.stringify([namespace, scope, key, path])
}

function oldest(found: readonly UnknownOutcome[], limit: number): UnknownOutcome[] {
  const byName = new Map(found.map((each) => [nameOf(each), each]))
  return [...byName.values()].sort((a, b) => a.retentionRemainingMs - b.retentionRemainingMs).slice(0, limit)
}
