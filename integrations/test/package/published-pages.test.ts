import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { addressOf, documentationOf } from '../../../scripts/address.mjs'
import { publishedPage } from '../../../scripts/published-pages.mjs'
import { headingsOf, linksOf } from '../../../test/docs/links.js'
import { PAGES, read } from '../../../test/docs/pages.js'
import { packPackage, ROOT, run } from '../../../test/support/packed-package.js'

// Packing takes seconds, and more on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const manifest = JSON.parse(read('package.json'))
const ADDRESS = 'https://git.example/owner/once-per-key'
const ADDRESSED = { ...manifest, version: '9.8.7', repository: { type: 'git', url: `git+${ADDRESS}.git` } }

describe('the pages of the tarball', () => {
  test('link to what is in it, and to headings that are there', async () => {
    const { folder, tarball, remove } = await packPackage()
    onTestFinished(remove)
    await run('tar', ['-xzf', tarball], folder)
    const listed = await run('tar', ['-tzf', tarball], folder)
    const files = listed.split('\n').map((file) => file.replace(/^package\//, ''))
    const texts = new Map<string, string>()
    for (const path of files.filter((file) => file.endsWith('.md'))) {
      texts.set(path, await readFile(join(folder, 'package', path), 'utf8'))
    }
    const links = [...texts].flatMap(([path, text]) => linksOf({ path, text }))
    expect(links.length).toBeGreaterThan(200)
    for (const { from, path, heading } of links) {
      expect(files, from).toContain(path)
      if (heading !== '') expect(headingsOf(texts.get(path) ?? ''), `${from}: ${path}`).toContain(heading)
    }
  })

  test('are for users: none about the project’s own tests, measurements and example service', async () => {
    const { folder, tarball, remove } = await packPackage()
    onTestFinished(remove)
    const listed = await run('tar', ['-tzf', tarball], folder)
    expect(listed).not.toMatch(/CONTRIBUTING|RELEASING|docs\/(?:proof|design|benchmarks|playground|scale)\b/)
  })
})

describe('a link to what is not in the package', () => {
  const page = 'See [recipes/order.ts](../examples/recipes/order.ts), [why](design.md#why) and [errors](errors.md#a).'

  test('is the file’s name, while the project has no address', () => {
    expect(publishedPage('docs/jobs.md', page, { ...manifest, repository: undefined })).toBe(
      'See `examples/recipes/order.ts`, why (`docs/design.md` in the repository) and [errors](errors.md#a).',
    )
  })

  test('is the address of the file in this version, once there is one', () => {
    expect(publishedPage('docs/jobs.md', page, ADDRESSED)).toBe(
      `See [recipes/order.ts](${ADDRESS}/blob/v9.8.7/examples/recipes/order.ts), ` +
        `[why](${ADDRESS}/blob/v9.8.7/docs/design.md#why) and [errors](errors.md#a).`,
    )
  })

  test('stays in a block of code', () => {
    const block = '```md\n[why](design.md)\n```\n'
    expect(publishedPage('docs/jobs.md', block, manifest)).toBe(block)
  })

  test('is shown for the README’s picture, which is left out until then', () => {
    const readme = read('README.md')
    expect(publishedPage('README.md', readme, { ...manifest, repository: undefined })).not.toContain('<picture>')
    const pictures = publishedPage('README.md', readme, ADDRESSED).match(/(?:src|srcset)="[^"]+"/g)
    expect(pictures).toHaveLength(2)
    for (const picture of pictures ?? []) expect(picture).toContain(`"${ADDRESS}/raw/v9.8.7/examples/payments/`)
  })
})

describe('the runbook of an alert', () => {
  const rules = read('docs/dashboards/alerts.yml')
  const runbooks = (text: string) => [...text.matchAll(/runbook_url: (\S+)#/g)].map(([, page]) => page)

  test('is in the package, while the project has no address', () => {
    const published = publishedPage('docs/dashboards/alerts.yml', rules, { ...manifest, repository: undefined })
    expect(new Set(runbooks(published))).toEqual(new Set(['once-per-key/docs/observability.md']))
  })

  test('is at the address of this version, once there is one', () => {
    const published = publishedPage('docs/dashboards/alerts.yml', rules, ADDRESSED)
    expect(new Set(runbooks(published))).toEqual(new Set([`${ADDRESS}/blob/v9.8.7/docs/observability.md`]))
    expect(runbooks(published)).toHaveLength(runbooks(rules).length)
  })
})

test('sections of versions that were never released are left out of the changelog, but for the newest', () => {
  const section = (heading: string) => `## [${heading}\n\n- A change.\n\n`
  const changelog = ['# Changelog\n\n', '3.0.0] - unreleased', '2.0.0] - unreleased', '1.0.0] - 2026-01-02']
  const [title, ...sections] = changelog
  const published = publishedPage('CHANGELOG.md', title + sections.map(section).join(''), manifest)
  expect(published.match(/^## .*/gm)).toEqual(['## [3.0.0] - unreleased', '## [1.0.0] - 2026-01-02'])
})

test('npm pack publishes these pages, and leaves the working copy as it was, edits included', async () => {
  const copy = await mkdtemp(join(tmpdir(), 'once-per-key-'))
  onTestFinished(() => rm(copy, { recursive: true, force: true }))
  for (const name of [
    ...manifest.files.filter((name: string) => !/^(?:!|dist)/.test(name)),
    'README.md',
    'package.json',
  ]) {
    await cp(join(ROOT, name), join(copy, name), { recursive: true })
  }
  const step = (what: string) =>
    promisify(execFile)(process.execPath, [join(ROOT, 'scripts/published-pages.mjs'), what], { cwd: copy })
  const page = (path: string) => readFile(join(copy, path), 'utf8')

  await step('write')
  expect(await page('README.md')).toBe(publishedPage('README.md', read('README.md'), manifest))
  await step('write') // the first was broken off
  await writeFile(join(copy, 'docs/jobs.md'), 'edited')
  await step('restore')
  for (const { path, text } of PAGES.filter(({ path }) => path !== 'docs/jobs.md')) expect(await page(path)).toBe(text)
  expect(await page('docs/jobs.md')).toBe('edited')
  await expect(step('wriet')).rejects.toThrow('usage')
})

describe('the project’s address', () => {
  test.each([
    ['https://github.com/owner/name', 'https://github.com/owner/name'],
    ['github:owner/name', 'https://github.com/owner/name'],
    [{ url: 'git+https://git.example/owner/name.git' }, 'https://git.example/owner/name'],
    [undefined, null],
  ])('%j of package.json is %j', (repository, address) => {
    expect(addressOf({ repository })).toBe(address)
  })

  test('that is none is an error', () => {
    expect(() => addressOf({ repository: 'owner name' })).toThrow('repository of package.json: owner name')
  })

  test('is what messages point to, in place of the folder in the package', () => {
    expect(documentationOf({ ...manifest, repository: undefined })).toBe('once-per-key/docs')
    expect(documentationOf(ADDRESSED)).toBe(`${ADDRESS}/blob/v9.8.7/docs`)
  })

  test('stands in `repository` of package.json, and nowhere else', () => {
    expect(Object.keys(manifest)).not.toContain('homepage')
    expect(Object.keys(manifest)).not.toContain('bugs')
    const address = addressOf(manifest)
    if (address !== null) for (const { path, text } of PAGES) expect(text, path).not.toContain(address)
  })
})
