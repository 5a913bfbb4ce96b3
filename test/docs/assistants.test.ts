import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { expect, onTestFinished, test, vi } from 'vitest'
import { read } from './pages.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
vi.setConfig({ testTimeout: 120_000 })

/** What assistants read: they write what they see there. */
const PAGES = ['llms.txt', 'skills/once-per-key/SKILL.md']

test('the code that assistants are shown compiles', () => {
  const folder = mkdtempSync(join(ROOT, 'node_modules/.assistants-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const files = PAGES.flatMap((path) =>
    [...read(path).matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = ''], i) => {
      const file = join(folder, `${path.replaceAll('/', '-')}-${i}.ts`)
      writeFileSync(file, code)
      return file
    }),
  )
  expect(files).toHaveLength(4)
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...config, files, include: [] }, ts.sys, ROOT)
  const diagnostics = ts.getPreEmitDiagnostics(ts.createProgram(files, options))
  expect(diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))).toEqual([])
})

test.each(PAGES)('%s names entries and pages that are there', (path) => {
  const { exports } = JSON.parse(read('package.json'))
  for (const [, entry = ''] of read(path).matchAll(/`(\/[a-z]+)`/g)) expect(Object.keys(exports)).toContain(`.${entry}`)
  for (const [, linked = ''] of read(path).matchAll(/\b(docs\/[\w/-]+\.md)/g)) expect(read(linked)).not.toBe('')
})
