import { join } from 'node:path'
import { installProgram } from '../../../test/support/node-binary.mjs'

/** npm packages that bring a runtime's binary: about 100 MB each, so they are no development dependencies. */
const VERSIONS = { bun: '1.4.5', deno: '2.9.6', workerd: '1.20261117.1' } as const

export type Runtime = keyof typeof VERSIONS

/** The path of a runtime's program: installed when a test first asks for it, and kept for the next run. */
export function installRuntime(name: Runtime): string {
  const program = join('.bin', process.platform === 'win32' ? `${name}.cmd` : name)
  const path = installProgram(name, VERSIONS[name], program)
  if (path === undefined) throw new Error(`${name} could not be installed.`)
  return path
}
