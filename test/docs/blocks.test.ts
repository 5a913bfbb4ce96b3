import { readdirSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { BLOCKS, page, ROOT, read } from './pages.js'

/** It is the one of the examples. */
const REEXPORTED = 'integrations/recipes/merchant.ts'

/** Of these languages a block is a whole file, so that it works where it is pasted. */
const WHOLE = ['js', 'ts', 'sql', 'conf']
/** What programs print, pictures, and lines for a shell, which test/docs/links.test.ts reads. */
const OTHERS = ['text', 'mermaid', 'sh']

const tests = ['test', 'integrations/test'].flatMap((folder) =>
  readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.ts$/.test(name))
    .map((name) => ({
      folder: posix.join(folder, posix.dirname(name.replaceAll('\\', '/'))),
      text: read(`${folder}/${name}`),
    })),
)

describe('the code on the pages', () => {
  test('is found', () => {
    expect(BLOCKS.length).toBeGreaterThan(40)
    const fences = BLOCKS.map(({ page: path }) => path).filter((path, i, all) => all.indexOf(path) === i)
    for (const path of fences) {
      const marks = page(path).match(/^```/gm)?.length
      expect(marks, path).toBe(2 * BLOCKS.filter((block) => block.page === path).length)
    }
  })

  const whole = BLOCKS.filter(({ language }) => WHOLE.includes(language))

  test.each(whole)('$page: a block is the whole of $file', ({ file, code }) => {
    expect(file).not.toBe('')
    expect(code, 'run npm run docs:blocks').toBe(read(file))
  })

  test.each([...new Set(whole.map(({ file }) => file))])('a test runs %s', (file) => {
    expect(runByATest(file)).toBe(true)
  })

  const parts = BLOCKS.filter(({ language }) => ![...WHOLE, ...OTHERS, 'console'].includes(language))

  test.each(parts)('$page: a block in $language is a part of $file', ({ file, code }) => {
    expect(file).not.toBe('')
    expect(`\n${flush(read(file))}`).toContain(`\n${flush(code)}`)
  })

  test('in a shell is commands and what they print, which a test compares', () => {
    const shown = BLOCKS.filter(({ language }) => language === 'console').map(({ page: path }) => path)
    expect(shown).toEqual(['README.md', 'docs/playground.md'])
  })
})

describe('the recipes', () => {
  const recipes = ['examples/recipes', 'integrations/recipes']
    .flatMap((folder) =>
      readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' }).map((name) =>
        posix.join(folder, name.replaceAll('\\', '/')),
      ),
    )
    .filter(
      (path) => /(?<!\.d)\.(ts|json|conf|sql)$/.test(path) && !path.endsWith('tsconfig.json') && path !== REEXPORTED,
    )

  test.each(recipes)('%s is on a page', (path) => {
    expect(BLOCKS.map(({ file }) => file)).toContain(path)
  })
})

/** A test names it: in an import, or as a path. What another file of the examples imports is run with that. */
function runByATest(file: string): boolean {
  const named = file.replace(/\.ts$/, '.js')
  const direct = tests.some(({ folder, text }) =>
    [...text.matchAll(/'(\.{1,2}\/[^']+)'/g)].some(([, link = '']) => posix.join(folder, link) === named),
  )
  const byPath = tests.some(({ text }) => text.includes(`'${file}'`))
  const importers = BLOCKS.filter(({ code }) =>
    [...code.matchAll(/from '(\.{1,2}\/[^']+)'/g)].some(([, link = '']) => link.endsWith(`/${posix.basename(named)}`)),
  )
  return direct || byPath || importers.some((block) => block.file !== file && runByATest(block.file))
}

/** Without indentation, which depends on where the code stands. */
function flush(code: string): string {
  return code.replace(/^[ \t]+/gm, '')
}
