import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { read } from '../docs/pages.js'
import { runNode } from '../support/run-node.js'
import { transpiledPackage } from '../support/transpiled-package.js'

test('beside zod 3.24 Node says what the page says, and other entries work', { timeout: 120_000 }, async () => {
  const { folder, write, remove } = await transpiledPackage()
  onTestFinished(remove)
  const zod = join(folder, 'node_modules/zod')
  await mkdir(zod)
  await writeFile(join(zod, 'package.json'), '{ "name": "zod", "version": "3.24.4", "exports": { ".": "./index.js" } }')
  const program = await write('program.mjs', "import 'once-per-key'\nawait import('once-per-key/webhooks')")
  const { exitCode, stderr } = await runNode(program)
  expect(exitCode).toBe(1)
  const [said = ''] = /Package subpath '\.\/v4' is not defined by "exports"/.exec(stderr) ?? [stderr]
  expect(stderr).toContain(`${join('zod', 'package.json')} imported from `)
  expect(read('docs/webhooks.md')).toContain(said)
})
