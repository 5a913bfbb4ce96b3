import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

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
const PUBLIC = new Set(['sealed', 'contextOf', 'fingerprintOf', 'oneOf'])

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
  test('have names that say what a function does', async () => {
    expect(findBadNames(await readSources())).toEqual([])
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
