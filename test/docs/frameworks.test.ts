import { posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Framework } from '../bindings/suite/framework.js'
import { FRAMEWORKS } from '../bindings/suite/frameworks/index.js'
import { importsOf } from '../support/imports.js'
import { page, read } from './pages.js'

/** The rows that are not the same everywhere, by what the suite knows of a framework. */
const DIFFERENCES: Readonly<Record<string, (framework: Framework) => boolean>> = {
  'what the application answers to an error is judged': ({ hasNoErrorHandler }) => !hasNoErrorHandler,
  "a `CertainFailure` or [another service's error](how-it-works.md#errors-of-other-services) is seen": ({
    hidesErrors,
  }) => !hidesErrors,
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

/** The modules of Node that a file asks for, and what it imports. */
function builtinsOf(path: string, seen: Set<string> = new Set()): string[] {
  if (seen.has(path)) return []
  seen.add(path)
  return importsOf(path, read(path))
    .filter(({ typeOnly }) => !typeOnly)
    .flatMap(({ specifier }) => {
      if (specifier.startsWith('node:')) return [specifier.slice('node:'.length)]
      const isOurs = specifier.startsWith('.')
      return isOurs ? builtinsOf(posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts'), seen) : []
    })
}

test.each(['fetch', 'hono'])(
  'what it needs of a runtime names each module of Node that once-per-key/%s asks for',
  (entry) => {
    const [, said = ''] = /and `node:(async_hooks`.*?)\.$/ms.exec(page('docs/frameworks.md')) ?? []
    const needed = new Set(builtinsOf(`src/${entry}/index.ts`))
    expect([...said.matchAll(/(\w+)`/g)].map(([, name]) => name)).toEqual([...needed].sort())
  },
)
