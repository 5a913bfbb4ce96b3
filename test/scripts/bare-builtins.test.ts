import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findBareBuiltins } from '../../scripts/bare-builtins.mjs'

test.each([
  { what: 'an import', file: 'core.js', text: `import { hash } from 'crypto'` },
  { what: 'an import for its effects', file: 'core.js', text: `import 'crypto'` },
  { what: 'an import when it is needed', file: 'bin/core.js', text: `const crypto = await import('crypto')` },
  { what: 'an export', file: 'core.js', text: `export * from 'crypto'` },
  { what: 'a require', file: 'core.cjs', text: `var crypto = require('crypto');` },
  { what: 'an import of types', file: 'core.d.cts', text: `import { Hash } from 'crypto'` },
  { what: 'a type', file: 'core.d.ts', text: `export declare const hash: import('crypto').Hash` },
])('a module of Node that $what names without node: is found', async ({ file, text }) => {
  const folder = await createFolder({ [file]: text })
  expect(findBareBuiltins(folder)).toEqual([`${join(file)}: crypto`])
})

test('a module of Node with node:, another package and a word in a string are not found', async () => {
  const folder = await createFolder({
    'core.js': `import { hash } from 'node:crypto'\nimport { z } from 'zod/v4'\nimport './crypto.js'`,
    'core.cjs': `var crypto = require('node:crypto');\nthrow new Error("from 'crypto'")`,
    'notes.md': `import { hash } from 'crypto'`,
  })
  expect(findBareBuiltins(folder)).toEqual([])
})

async function createFolder(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, 'bin'))
  for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text)
  return folder
}
