import { readFileSync } from 'node:fs'
import { singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { resolveOptions } from '../../src/core/options.js'
import { PROBLEM_CODES, problemOf } from '../../src/core/problem.js'

const readme = read('../../README.md')
const source = read('../../src/core/options.ts')

/** Without what is required, and without what is no plain value. */
const {
  store: _,
  scope: __,
  problemStatuses: ___,
  methods,
  ...defaults
} = resolveOptions({
  store: new MemoryStore(),
  scope: singleTenant,
})

describe('what is said of a default is so', () => {
  test.each(Object.entries(defaults))('%s: %s', (name, value) => {
    const inReadme = typeof value === 'number' ? value.toLocaleString('en-US') : `\`${written(value)}\``
    expect(readme).toContain(`| \`${name}\` | ${inReadme} |`)
    const inSource = typeof value === 'number' ? value.toLocaleString('en-US').replaceAll(',', '_') : written(value)
    const docstring = source
      .slice(0, source.indexOf(`readonly ${name}?:`))
      .split('@default')
      .at(-1)
    expect(docstring).toMatch(new RegExp(`^ ${inSource}[: ]`))
  })

  test('the methods are those that the README and the docstring name', () => {
    expect(readme).toContain(`| \`methods\` | ${methods.map((method) => `\`${method}\``).join(', ')} |`)
    expect(source).toContain(`@default [${methods.map(written).join(', ')}]`)
  })
})

test('the README’s table of refusals is the catalogue', () => {
  const section = readme.slice(readme.indexOf('### What a client can get wrong'), readme.indexOf('## Options'))
  const rows = [...section.matchAll(/^\| (`.*`) \| (\d+) \| (.*?) ?\| `(true|false)` \|$/gm)]
  const listed = rows.flatMap(([, codes = '', status, retryAfter, shouldRetry]) =>
    [...codes.matchAll(/\w+/g)].map(([code]) => [code, Number(status), retryAfter !== '', shouldRetry === 'true']),
  )
  const catalogue = PROBLEM_CODES.map((code) => {
    const { status, retryAfterSeconds } = problemOf(code, { retryAfterMs: 0, problemStatuses: {} })
    return [code, status, retryAfterSeconds !== null, retryAfterSeconds !== null]
  })
  expect(listed).toEqual(catalogue)
})

function written(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value)
}

function read(relative: string): string {
  return readFileSync(new URL(relative, import.meta.url), 'utf8')
}
