import { inspect } from 'node:util'
import { requestOptions } from 'once-per-key/http'
import { describe, expect, test } from 'vitest'
import { page } from './pages.js'

const readme = page('README.md')

describe('the README', () => {
  test('is read in three minutes: at most 1,400 words, code included', () => {
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
    const defaultOf = (name: string) => Object(requestOptions)[name].default
    const written = (value: unknown) => (typeof value === 'number' ? value.toLocaleString('en-US') : inspect(value))
    expect(rows.map(([, name = '', said]) => [name, said])).toEqual(
      ['retentionMs', 'required', 'leaseMs', 'inFlightWaitMs', 'unknownOutcome'].map((name) => [
        name,
        written(defaultOf(name)),
      ]),
    )
  })
})
