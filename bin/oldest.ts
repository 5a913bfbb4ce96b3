import type { RecordName } from 'once-per-key/core'
import { type Options, parseCount } from './command-line.js'
import { printTable } from './printed.js'

const USUAL_LIMIT = 1_000

/** A record as a walk through a store finds it. */
export interface WalkedRecord extends RecordName {
  /** `null`: it could not be read. */
  readonly retentionRemainingMs: number | null
}

/** Those that are shown, the oldest first. Keeps no more of them, however many there are. */
export async function collectOldest<Each extends WalkedRecord>(
  walk: AsyncIterable<Each>,
  options: Options,
): Promise<{ readonly total: number; readonly shown: readonly Each[] }> {
  const limit = parseCount(options, 'limit') ?? USUAL_LIMIT
  const names = new Set<string>()
  let kept: Each[] = []
  for await (const found of walk) {
    names.add(encodeRecordName(found)) // A walk may come across one twice.
    kept.push(found)
    if (kept.length >= 2 * limit) kept = selectOldest(kept, limit)
  }
  return { total: names.size, shown: selectOldest(kept, limit) }
}

export type Columns<Each> = readonly (readonly [title: string, cellOf: (found: Each) => string])[]

/** A column `path` only where one of them has a path. */
export function printOldest<Each extends WalkedRecord>(
  all: Columns<Each>,
  total: number,
  shown: readonly Each[],
): void {
  const columns = shown.some(({ path }) => path !== undefined) ? all : all.filter(([title]) => title !== 'path')
  printTable(
    columns.map(([title]) => title),
    shown.map((each) => columns.map(([, cellOf]) => cellOf(each))),
  )
  console.log(`${total} in all${total > shown.length ? `, the oldest ${shown.length} shown` : ''}.`)
}

function encodeRecordName({ namespace, scope, key, path }: WalkedRecord): string {
  return JSON.stringify([namespace, scope, key, path])
}

function selectOldest<Each extends WalkedRecord>(found: readonly Each[], limit: number): Each[] {
  const byName = new Map(found.map((each) => [encodeRecordName(each), each]))
  return [...byName.values()].sort((a, b) => getSortKey(a) - getSortKey(b)).slice(0, limit)
}

/** What cannot be read comes first: it must be seen. */
function getSortKey({ retentionRemainingMs }: WalkedRecord): number {
  return retentionRemainingMs ?? Number.MIN_SAFE_INTEGER
}
