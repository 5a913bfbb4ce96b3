import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ROOT, read } from './pages.js'

const { scripts } = JSON.parse(read('package.json'))

describe.each(['CONTRIBUTING.md', 'test/README.md'])('%s', (path) => {
  const text = read(path)
  const folder = path.replace(/[^/]*$/, '')

  test('names commands that there are', () => {
    const commands = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, command = '']) => command)
    expect(commands.filter((command) => !(command in scripts))).toEqual([])
    expect(commands.length).toBeGreaterThan(0)
  })

  test('names files and folders that there are', () => {
    const links = [...text.matchAll(/\]\(([^):#]+)\)/g)].map(([, link = '']) => `${folder}${link}`)
    const names = [...text.matchAll(/`((?:src|test|docs|adapters|examples|integrations)\/[\w./-]+)`/g)].map(
      ([, name = '']) => name,
    )
    const own = [...text.matchAll(/^\|[^|]*\| `([\w/.-]+)`/gm)].map(([, name = '']) => `${folder}${name}`)
    const all = [...links, ...names, ...(folder === '' ? [] : own)]
    expect(all.length).toBeGreaterThan(5)
    expect(all.filter((name) => !['', folder].some((base) => existsSync(`${ROOT}${base}${name}`)))).toEqual([])
  })
})

describe('the tour', () => {
  test('has twelve stops, and each is where the page says', () => {
    const stops = [...read('CONTRIBUTING.md').matchAll(/`([\w./-]+\.ts):(\d+)` \| `([^`]+)`/g)]
    expect(stops).toHaveLength(12)
    for (const [, path = '', line, code = ''] of stops) {
      expect(read(path).split('\n')[Number(line) - 1], 'run npm run docs:tour').toContain(code.replaceAll('\\|', '|'))
    }
  })
})
