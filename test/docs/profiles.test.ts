import { expect, test } from 'vitest'
import { page, read } from './pages.js'

const titles = ['test/bindings/suite/profiles.test.ts', 'test/http/profiles.test.ts']
  .map(read)
  .flatMap((text) => [...text.matchAll(/^ {2}test\('(.*)', async/gm)].map(([, title = '']) => title))

/** The rows of the tables below each profile's heading: a section of the text, and its rule. */
const rows = page('docs/profiles.md')
  .split(/^## `/m)
  .slice(1)
  .flatMap((part) => [...part.matchAll(/^\| (?!section|text|---)([^|]+) \| ([^|]+) \|/gm)])
  .map(([, section = '', rule = '']) => (section.startsWith('§') ? `${section}: ${rule}` : rule))

test('the tables are found', () => {
  expect(rows.length).toBeGreaterThan(20)
})

test.each(rows)('%s', (rule) => {
  expect(titles).toContain(rule)
})
