import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { read } from '../docs/pages.js'
import { NODES } from '../support/node-binary.mjs'

const script = (name: string) => fileURLToPath(new URL(`../../scripts/${name}.mjs`, import.meta.url))

const REPOSITORY = { type: 'git', url: 'git+https://git.example/owner/name.git' }
const CHANGELOG = '# Changelog\n\n## [1.2.3] - 2026-12-01\n\n- A line.\n\n## [1.2.2] - 2026-11-01\n\n- An older one.\n'

async function released({
  tag = 'v1.2.3',
  repository = REPOSITORY as object | string | null,
  changelog = CHANGELOG,
} = {}) {
  const cwd = await mkdtemp(join(tmpdir(), 'once-per-key-'))
  onTestFinished(() => rm(cwd, { recursive: true, force: true }))
  await writeFile(join(cwd, 'package.json'), JSON.stringify({ name: 'once-per-key', version: '1.2.3', repository }))
  await writeFile(join(cwd, 'CHANGELOG.md'), changelog)
  const env = { ...process.env, GITHUB_REF_NAME: tag, GITHUB_REPOSITORY: 'owner/name' }
  const { status, stdout, stderr } = spawnSync(process.execPath, [script('releasable')], { cwd, env, encoding: 'utf8' })
  return { status, stdout, stderr }
}

test('a release has the text of its section of the changelog', async () => {
  expect(await released()).toEqual({ status: 0, stdout: '- A line.\n', stderr: '' })
})

test.each([
  { what: 'another tag', given: { tag: 'v1.2.4' }, why: 'The tag is v1.2.4' },
  { what: 'no date', given: { changelog: CHANGELOG.replace('2026-12-01', 'unreleased') }, why: 'CHANGELOG.md begins' },
  { what: 'no address', given: { repository: null }, why: 'not filled in' },
  {
    what: 'another address',
    given: { repository: 'https://git.example/owner/other' },
    why: 'repository of package.json',
  },
])('with $what there is none', async ({ given, why }) => {
  const { status, stderr } = await released(given)
  expect(status).toBe(1)
  expect(stderr).toContain(why)
})

test('workflows name each action by its full digest, and test every Node that engines names', () => {
  const [ci, release] = ['ci', 'release'].map((name) => read(`.github/workflows/${name}.yml`))
  const uses = [...`${ci}${release}`.matchAll(/uses: (\S+)(.*)/g)].filter(([, action = '']) => !action.startsWith('./'))
  expect(uses.length).toBeGreaterThan(3)
  for (const [line] of uses) expect(line).toMatch(/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  expect(ci).toContain("node: ['20.19', 22, 24, 26]")
  expect(JSON.parse(read('package.json')).engines.node).toBe('>=20.19')
  expect(release).toMatch(/id-token: write[\s\S]*npm publish --provenance/)
  expect(release).not.toMatch(/NODE_AUTH_TOKEN|NPM_TOKEN/)
})

test('before a release each layer of the proof runs on every Node that engines names', () => {
  const release = read('.github/workflows/release.yml')
  const [, prove = ''] = /^ {2}prove:\n([\s\S]*?)^ {2}\w/m.exec(release) ?? []
  expect(prove).toContain("node: ['20.19', 22, 24, 26]")
  expect(prove).toContain('npm run prove -- layers')
  expect(release).toContain('needs: [test, prove]')
  expect(NODES).toEqual([20, 22, 24, 26])
  expect(read('RELEASING.md')).toContain('npm run prove:nodes -- layers')
  expect(read('scripts/test-everything.mjs')).toContain("run('prove:nodes', 'layers')")
})

test('its author is the one whom its license names', () => {
  const { author } = JSON.parse(read('package.json'))
  expect(read('LICENSE')).toMatch(new RegExp(`^Copyright \\(c\\) \\d{4} ${author}$`, 'm'))
})

test.each(['weight', 'api'])('npm run %s fails for an argument that it does not know', (name) => {
  const { status, stderr } = spawnSync(process.execPath, [script(name), 'typo'], { encoding: 'utf8' })
  expect(status).toBe(1)
  expect(stderr).toContain('unknown argument typo')
})
