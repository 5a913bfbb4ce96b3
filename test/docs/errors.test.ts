import { describe, expect, test } from 'vitest'
import { ADVICE as mySqlAdvice } from '../../adapters/mysql/errors.js'
import { ADVICE as postgresAdvice } from '../../adapters/postgres/errors.js'
import { ADVICE as sqliteAdvice } from '../../adapters/sqlite/errors.js'
import { createProblem } from '../../src/http/answer/problem.js'
import { PROBLEM_CODES } from '../../src/http/options/problem.js'
import { page, read } from './pages.js'

const errors = page('docs/errors.md')

/** Each closed union of codes, as its source writes it. */
const UNIONS = [
  ['src/core/errors.ts', 'IdempotencyErrorCode', 19],
  ['src/core/store/cas-store-error.ts', 'CasStoreErrorCode', 3],
  ['adapters/sealed/errors.ts', 'SealedStoreErrorCode', 4],
] as const

/** The codes of a database's store are the names of a table, and stand in a list in front of it too. */
const TABLES = [
  ['MySqlStoreErrorCode', mySqlAdvice, 'adapters/mysql/errors.ts', 18],
  ['PostgresStoreErrorCode', postgresAdvice, 'adapters/postgres/errors.ts', 18],
  ['SqliteStoreErrorCode', sqliteAdvice, 'adapters/sqlite/errors.ts', 15],
] as const

describe('the page of errors has a heading for each code', () => {
  test.each(UNIONS)('of %s: %s', (path, name, least) => {
    const [, union = ''] = new RegExp(`export type ${name} =((?:\\s*\\|?\\s*'\\w+')+)`).exec(read(path)) ?? []
    expectHeadings(
      [...union.matchAll(/'(\w+)'/g)].map(([, code = '']) => code),
      least,
    )
  })

  test.each(TABLES)('of %s', (_, table, path, least) => {
    const listed = [...read(path).matchAll(/^ \* - ((?:`\w+`(?:, )?)+):/gm)]
    const codes = listed.flatMap(([, names = '']) => [...names.matchAll(/\w+/g)].map(([code]) => code))
    expect(codes.toSorted()).toEqual(Object.keys(table).toSorted())
    expectHeadings(codes, least)
  })

  test('of problems', () => {
    expectHeadings(PROBLEM_CODES, 9)
  })

  test('of refusals by a webhook receiver', () => {
    const source = read('src/webhooks/receiver/delivery/refusal.ts')
    const catalogue = source.slice(source.indexOf('const CATALOGUE'), source.indexOf('as const satisfies'))
    expectHeadings(
      [...catalogue.matchAll(/^ {2}(\w+): (?:\{$|problemCatalogue\.)/gm)].map(([, code = '']) => code),
      12,
    )
  })

  function expectHeadings(codes: readonly string[], least: number) {
    expect(codes.length).toBeGreaterThanOrEqual(least)
    const headings = [...errors.matchAll(/^### `(\w+)`$/gm)].map(([, code]) => code)
    for (const code of codes) expect(headings).toContain(code)
  }
})

test('each heading is there once, so that a link to it is one', () => {
  const headings = [...errors.matchAll(/^#+ (.+)$/gm)].map(([, title]) => title)
  expect(new Set(headings).size).toBe(headings.length)
})

test('each entry says what happened, in more than a word', () => {
  for (const entry of errors.split(/^### /m).slice(1)) expect(entry.length, entry).toBeGreaterThan(50)
})

test('the table of problems is the catalogue', () => {
  const section = errors.slice(errors.indexOf('## Problems'), errors.indexOf('### `key_missing`'))
  const rows = [...section.matchAll(/^\| (`.*`) \| (\d+) \| (.*?) ?\| `(true|false)` \|$/gm)]
  const listed = rows.flatMap(([, codes = '', status, retryAfter, shouldRetry]) =>
    [...codes.matchAll(/\w+/g)].map(([code]) => [code, Number(status), retryAfter !== '', shouldRetry === 'true']),
  )
  const catalogue = PROBLEM_CODES.map((code) => {
    const { status, retryAfterSeconds } = createProblem(code, { retryAfterMs: 0, problemStatuses: {} })
    return [code, status, retryAfterSeconds !== null, retryAfterSeconds !== null]
  })
  expect(listed).toEqual(catalogue)
})
