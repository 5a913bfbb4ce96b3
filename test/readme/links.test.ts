import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const readme = read('../../README.md')
const { scripts } = JSON.parse(read('../../package.json'))

describe('what the README points to is there', () => {
  const prose = readme.replace(/^```[\s\S]*?^```$/gm, '')
  const places = [...prose.matchAll(/(?:\]\(|(?:src|srcset)=")(?!https?:|#)([^)"]+)/g)].map(([, place = '']) => place)

  test('the picture of the page, for light and for dark, and what it shows', () => {
    expect(places.filter((place) => place.endsWith('.png'))).toHaveLength(2)
    expect(readme).toMatch(/<img [^>]*alt="[^"]{50,}"/)
  })

  test.each(places)('%s', (place) => {
    expect(existsSync(new URL(`../../${place}`, import.meta.url))).toBe(true)
  })

  const commands = [...readme.matchAll(/npm (?:run )?([\w:]+)/g)].map(([, command = '']) => command)

  test.each([...new Set(commands)].filter((command) => command !== 'ci'))('npm run %s', (command) => {
    expect(Object.keys(scripts)).toContain(command)
  })
})

function read(relative: string): string {
  return readFileSync(new URL(relative, import.meta.url), 'utf8')
}
