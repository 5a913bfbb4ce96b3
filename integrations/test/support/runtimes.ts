import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { npm, ROOT } from '../../../test/support/packed-package.js'

/** npm packages that bring a runtime's binary: about 100 MB each, so they are no development dependencies. */
const VERSIONS = { bun: '1.4.5', deno: '2.9.6', workerd: '1.20261117.1' } as const

export type Runtime = keyof typeof VERSIONS

/** The path of a runtime's program: installed when a test first asks for it, and kept for the next run. */
export async function installRuntime(name: Runtime): Promise<string> {
  const prefix = join(ROOT, 'node_modules/.runtimes', name)
  const program = join(prefix, 'node_modules/.bin', process.platform === 'win32' ? `${name}.cmd` : name)
  if (!existsSync(program)) {
    await mkdir(prefix, { recursive: true })
    await writeFile(join(prefix, 'package.json'), '{ "private": true }')
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', prefix, `${name}@${VERSIONS[name]}`]
    await promisify(execFile)(npm, args, { cwd: prefix })
  }
  return program
}
