import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Names that are still to be changed, as `file: what is wrong`. The list may only become shorter. */
const NOT_YET: readonly string[] = [
  'adapters/mysql/connection/client.ts: connectionOf has no verb in front of its preposition',
  'adapters/mysql/connection/client.ts: coreOf has no verb in front of its preposition',
  'adapters/mysql/connection/client.ts: ignored has no verb',
  'adapters/mysql/connection/client.ts: sent has no verb',
  'adapters/mysql/connection/examination.ts: examined has no verb',
  'adapters/mysql/errors.ts: errorNumberOf has no verb in front of its preposition',
  'adapters/mysql/rows/record-row.ts: foundIn has no verb in front of its preposition',
  'adapters/mysql/rows/steps-column.ts: stepsOf has no verb in front of its preposition',
  'adapters/mysql/rows/table.ts: tablesOf has no verb in front of its preposition',
  'adapters/mysql/statement.ts: sizeOf has no verb in front of its preposition',
  'adapters/mysql/transactions/clients.ts: opened has no verb',
  'adapters/mysql/transactions/writes.ts: valueIn has no verb in front of its preposition',
  'adapters/postgres/client.ts: answered has no verb',
  'adapters/postgres/client.ts: piped has no verb',
  'adapters/postgres/database.ts, adapters/mysql/connection/database.ts: several classes Database',
  'adapters/postgres/errors.ts: sqlStateOf has no verb in front of its preposition',
  'adapters/postgres/reply.ts: recordedIn has no verb in front of its preposition',
  'adapters/postgres/reply.ts: rowOf has no verb in front of its preposition',
  'adapters/postgres/reply.ts: rowsOf has no verb in front of its preposition',
  'adapters/postgres/schema/schema.ts: quoted has no verb',
  'adapters/postgres/schema/unclaimed.ts: unclaimed has no verb',
  'adapters/postgres/statements.ts: statementsOf has no verb in front of its preposition',
  'adapters/postgres/transactions.ts: opened has no verb',
  'adapters/sql/clients.ts: isolationOf has no verb in front of its preposition',
  'adapters/sql/clients.ts: rowsIn has no verb in front of its preposition',
  'adapters/sql/clients.ts: templateOf has no verb in front of its preposition',
  'adapters/sql/clients.ts: wordsOf has no verb in front of its preposition',
  'adapters/sql/ownership.ts: owned has no verb',
  'adapters/sql/record-columns.ts: asciiHeadOf has no verb in front of its preposition',
  'adapters/sql/record-columns.ts: columnsOf has no verb in front of its preposition',
  'adapters/sql/record-columns.ts: headIn has no verb in front of its preposition',
  'adapters/sql/record-columns.ts: listedIn has no verb in front of its preposition',
  'adapters/sql/record-columns.ts: recordOf has no verb in front of its preposition',
  'adapters/sqlite/client.ts: prepared has no verb',
  'adapters/sqlite/client.ts: resultCodeOf has no verb in front of its preposition',
  'adapters/sqlite/client.ts: wordsOf has no verb in front of its preposition',
  'adapters/sqlite/in-transaction.ts, adapters/postgres/in-transaction.ts, adapters/mysql/transactions/in-transaction.ts: several classes InTransaction',
  'adapters/sqlite/records.ts, adapters/mysql/rows/records.ts: several classes Records',
  'adapters/sqlite/records.ts: recordIn has no verb in front of its preposition',
  'src/core/events/trace.ts: traced has no verb',
  'src/core/options/validation.ts: oneOf has no verb in front of its preposition',
]

/** Words that end like a participle, or are written like one, and are something else. */
const NO_PARTICIPLES = new Set(['feed', 'embed', 'seed', 'proceed', 'exceed', 'need', 'read', 'put', 'set', 'cut'])
/** What a function does, or asks, at the beginning of its name. */
const PARTICIPLE =
  /^(?:[a-z]+ed|[a-z]+ing|begun|done|given|gone|held|kept|known|left|lost|made|seen|sent|shown|taken|told|written)$/
const ADJECTIVE =
  /^(?:able|bad|certain|empty|final|green|harmless|new|plain|ready|red|safe|same|stale|unknown|whole|wrong|yellow)$/
/** Verbs with a preposition as their end: `waitFor(promise)`. */
const VERB =
  /^(?:add|apply|assert|ask|belong|build|call|change|check|compare|compute|count|create|describe|encode|enter|explain|fail|find|format|get|has|is|limit|list|look|make|may|open|parse|pick|print|read|report|require|resolve|run|show|sign|throw|to|wait|warn|was)(?=[A-Z])/
/** The public ones whose name is an option's value, or the field's word. */
const PUBLIC = new Set(['sealed', 'contextOf', 'fingerprintOf'])

function findBadNames(files: ReadonlyMap<string, string>): string[] {
  const classes = new Map<string, string[]>()
  const found: string[] = []
  for (const [path, text] of files) {
    for (const statement of ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true).statements) {
      const isExported =
        ts.canHaveModifiers(statement) &&
        ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
      if (!isExported) continue
      if (ts.isFunctionDeclaration(statement) && statement.name) {
        const fault = findNameFault(statement.name.text, statement.type?.getText() ?? '')
        if (fault !== null) found.push(`${path}: ${statement.name.text} ${fault}`)
      }
      if (ts.isClassDeclaration(statement) && statement.name) {
        classes.set(statement.name.text, [...(classes.get(statement.name.text) ?? []), path])
      }
    }
  }
  for (const [name, paths] of classes) if (paths.length > 1) found.push(`${paths.join(', ')}: several classes ${name}`)
  return [...new Set(found)]
}

function findNameFault(name: string, returned: string): string | null {
  if (/^\w*Error$/.test(returned) && !name.endsWith('Error')) return 'returns an error, so it should end in Error'
  if (/Sql$/.test(returned) && !name.endsWith('Sql')) return 'returns SQL, so it should end in Sql'
  if (PUBLIC.has(name)) return null
  if (!NO_PARTICIPLES.has(name) && (PARTICIPLE.test(name) || ADJECTIVE.test(name))) return 'has no verb'
  if (/(?:Of|In|For)$/.test(name) && !VERB.test(name)) return 'has no verb in front of its preposition'
  return null
}

describe('the sources', () => {
  test('have names that say what a function does, beside those that are to be changed', async () => {
    expect(findBadNames(await readSources()).sort()).toEqual([...NOT_YET].sort())
  })
})

describe('the check finds', () => {
  test.each([
    ['export function settled(): void {}', 'settled has no verb'],
    ['export function held(): void {}', 'held has no verb'],
    ['export function waiting(): void {}', 'waiting has no verb'],
    ['export function unknown(): void {}', 'unknown has no verb'],
    [
      'export function recordIn(text: string): string { return text }',
      'recordIn has no verb in front of its preposition',
    ],
    ['export async function keysOf(): Promise<void> {}', 'keysOf has no verb in front of its preposition'],
    [
      'export function broken(): TypeError { return new TypeError() }',
      'broken returns an error, so it should end in Error',
    ],
  ])('%s', (text, fault) => {
    expect(findBadNames(new Map([['src/a.ts', text]]))).toEqual([`src/a.ts: ${fault}`])
  })

  test('two exported classes of one name', () => {
    const files = ['adapters/a.ts', 'src/b.ts'].map((path) => [path, 'export class Records {}'] as const)
    expect(findBadNames(new Map(files))).toEqual(['adapters/a.ts, src/b.ts: several classes Records'])
  })

  test('nothing in names that begin with a verb, nor in those that no other file sees', () => {
    const text = `
      export function waitFor(): void {}
      export function isSignedBy(): boolean { return true }
      export function readSettings(): void {}
      export function proceed(): void {}
      export function brokenError(): TypeError { return new TypeError() }
      function settled(): void {}
      class Records {}`
    expect(
      findBadNames(
        new Map([
          ['src/a.ts', text],
          ['src/b.ts', 'class Records {}'],
        ]),
      ),
    ).toEqual([])
  })
})

async function readSources(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>()
  for (const folder of ['src', 'adapters', 'bin']) {
    for (const entry of await readdir(join(ROOT, folder), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !entry.name.endsWith('.ts')) continue
      const path = join(entry.parentPath, entry.name)
      files.set(relative(ROOT, path).split(sep).join('/'), readFileSync(path, 'utf8'))
    }
  }
  return files
}
