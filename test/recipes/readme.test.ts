import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const MOST_LINES = 15

const readme = read('../../README.md')
const section = readme.slice(readme.indexOf('## Recipes\n'), readme.indexOf('## Webhooks\n'))
const recipes = section.split(/^### /m).slice(1)
/** Each block of code, and the line above it. */
const blocks = [...section.matchAll(/^(.+)\n\n```(\w+)\n([\s\S]*?)```$/gm)].map(
  ([, above = '', language = '', code = '']) => {
    const [, path = ''] = /\]\((examples\/recipes\/[\w./-]+)\)/.exec(above) ?? []
    return { path, language, code }
  },
)

describe('the README’s recipes', () => {
  test('have a test for each module', () => {
    const names = (folder: string, ending: string) =>
      readdirSync(new URL(folder, import.meta.url))
        .filter((name) => name.endsWith(ending))
        .map((name) => name.slice(0, -ending.length))
    const shown = blocks.map(({ path }) => path.replace(/^examples\/recipes\/(\w[\w-]*).*$/, '$1'))
    expect(names('.', '.test.ts')).toEqual(expect.arrayContaining(shown))
    for (const name of names('../../examples/recipes/', '.ts')) {
      if (!SHARED.includes(name)) expect(shown).toContain(name)
    }
  })

  test('each show code, and name its file in the line above it', () => {
    expect(recipes.length).toBe(12)
    for (const recipe of recipes) expect(recipe).toContain('```')
    expect(section.match(/^```\w+$/gm)).toHaveLength(blocks.length)
    expect(section.match(/^```$/gm)).toHaveLength(blocks.length)
  })

  test.each(blocks)('show what stands in $path', ({ path, code }) => {
    expect(path).not.toBe('')
    expect(code.trimEnd().split('\n').length).toBeLessThanOrEqual(MOST_LINES)
    expect(`\n${flush(read(`../../${path}`))}`).toContain(`\n${flush(code)}`)
  })
})

/** What the recipes take from an application, and no recipes themselves. */
const SHARED = ['merchant', 'payouts-app', 'multer.d']

/** Without indentation, which depends on where the code stands. */
function flush(code: string): string {
  return code.replace(/^[ \t]+/gm, '')
}

function read(relative: string): string {
  return readFileSync(new URL(relative, import.meta.url), 'utf8')
}
