import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { problemOf } from '../../src/http/answer/problem.js'
import { DEFAULTS } from '../../src/http/options/options.js'
import { PROBLEM_CODES } from '../../src/http/options/problem.js'
import { page } from './pages.js'

const readme = page('README.md')

describe('the README', () => {
  test('is read in two minutes: at most 1,400 words, code included', () => {
    expect(readme.split(/\s+/).filter((word) => word !== '').length).toBeLessThanOrEqual(1_400)
  })

  test('says first what it is, then how it is installed, and what happens on a crash', () => {
    const order = [
      '# once-per-key',
      'npm i once-per-key',
      '## When a process dies',
      '## Which store',
      '## Contributing',
    ]
    const places = order.map((text) => readme.indexOf(text))
    expect(places).not.toContain(-1)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
  })

  test('says the defaults of five options as they are', () => {
    const rows = [...readme.matchAll(/^\| `(\w+)` \| `?('?[\w,]+'?)`?(?: \(a day\))? \|/gm)].slice(0, 5)
    const defaults: Readonly<Record<string, unknown>> = DEFAULTS
    const written = (value: unknown) => (typeof value === 'number' ? value.toLocaleString('en-US') : inspect(value))
    expect(rows.map(([, name = '', said]) => [name, said])).toEqual(
      ['retentionMs', 'required', 'leaseMs', 'inFlightWaitMs', 'unknownOutcome'].map((name) => [
        name,
        written(defaults[name]),
      ]),
    )
  })

  test('has a table of refusals that is the catalogue', () => {
    const section = readme.slice(
      readme.indexOf('## What a client can get wrong'),
      readme.indexOf('## What this is not'),
    )
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
})
