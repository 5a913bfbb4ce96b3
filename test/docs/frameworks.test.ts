import { describe, expect, test } from 'vitest'
import type { Framework } from '../bindings/suite/framework.js'
import { FRAMEWORKS } from '../bindings/suite/frameworks/index.js'
import { page } from './pages.js'

/** The rows that are not the same everywhere, by what the suite knows of a framework. */
const DIFFERENCES: Readonly<Record<string, (framework: Framework) => boolean>> = {
  'what the application answers to an error is judged': ({ hasNoErrorHandler }) => !hasNoErrorHandler,
  'a `CertainFailure` that a handler throws is seen': ({ hidesErrors }) => !hidesErrors,
  'a key that is sent in two lines is refused': ({ joinsHeaderLines }) => !joinsHeaderLines,
  'the library reads the body itself, up to `maxBodyBytes`': ({ readsBodies }) => readsBodies === true,
}

const [head = [], , ...rows] = page('docs/frameworks.md')
  .split('\n')
  .filter((line) => line.startsWith('|') && line.split('|').length === 9)
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )

/** The column for a framework of the suite, such as `Express 4`. */
function columnOf({ name }: Framework): number {
  return head.findIndex((cell) =>
    cell.split(', ').some((each) => each !== '' && new RegExp(`^${each.replaceAll('`', '')}\\b`, 'i').test(name)),
  )
}

describe('the table of frameworks', () => {
  test.each(FRAMEWORKS)('has a column for $name, which says what the suite says', (framework) => {
    const column = columnOf(framework)
    expect(column).toBeGreaterThan(0)
    for (const [behaviour = '', ...cells] of rows) {
      const isSo = DIFFERENCES[behaviour]?.(framework) ?? true
      expect([behaviour, cells[column - 1]]).toEqual([behaviour, isSo ? 'yes' : 'no'])
    }
  })

  test('has every difference of the suite', () => {
    expect(rows.map(([behaviour]) => behaviour)).toEqual(expect.arrayContaining(Object.keys(DIFFERENCES)))
  })
})
