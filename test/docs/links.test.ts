import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { headingsOf, linksOf } from './links.js'
import { BLOCKS, PAGES, page, ROOT, read } from './pages.js'

const { scripts } = JSON.parse(read('package.json'))

describe('what the pages point to is there', () => {
  const links = PAGES.flatMap(linksOf)

  test('links are found', () => {
    expect(links.length).toBeGreaterThan(100)
  })

  test.each(links)('$from: $path#$heading', ({ path, heading }) => {
    expect(existsSync(`${ROOT}${path}`)).toBe(true)
    if (heading !== '') expect(headingsOf(read(path))).toContain(heading)
  })

  test('each page is linked from another', () => {
    const reached = new Set(links.filter(({ from, path }) => from !== path).map(({ path }) => path))
    for (const { path } of PAGES) if (path !== 'README.md') expect(reached).toContain(path)
  })

  test('the picture of the playground, for light and for dark, and what it shows', () => {
    const readme = page('README.md')
    expect(readme.match(/(?:src|srcset)="[^"]+\.png"/g)).toHaveLength(2)
    expect(readme).toMatch(/<img [^>]*alt="[^"]{50,}"/)
  })
})

describe('the commands that the pages name are there', () => {
  const all = PAGES.map(({ text }) => text).join('\n')
  const commands = [...all.matchAll(/npm run ([\w:]+)/g)].map(([, command = '']) => command)

  test.each([...new Set([...commands, 'start', 'test'])])('npm run %s', (command) => {
    expect(Object.keys(scripts)).toContain(command)
  })

  const lines = BLOCKS.filter(({ language }) => language === 'sh').flatMap(({ code }) => code.trimEnd().split('\n'))

  test.each([...new Set(lines)])('%s', (line) => {
    // The command's own test tries those of the command.
    expect(line).toMatch(
      /^npx once-per-key |^npm (?:ci|i [\w\s-]+|start|test|run [\w:]+)(?: && npm (?:start|test))?(?:\s+#.*)?$/,
    )
  })
})
