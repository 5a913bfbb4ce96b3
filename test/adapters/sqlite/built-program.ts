import { mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transpiledPackage } from '../../support/transpiled-package.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

export interface BuiltProgram {
  readonly path: string
  remove(): Promise<void>
}

/** Builds a program of this folder from today's sources, once for many processes. It may import `drivers.ts`. */
export async function buildProgram(program: string): Promise<BuiltProgram> {
  const built = await transpiledPackage()
  const name = '@photostructure/sqlite'
  await mkdir(join(built.folder, 'node_modules', dirname(name)))
  await symlink(join(ROOT, 'node_modules', name), join(built.folder, 'node_modules', name), 'junction')
  const [drivers, main] = await Promise.all([sourceOf('drivers.ts'), sourceOf(program)])
  await built.write('drivers.mjs', drivers)
  const path = await built.write('main.mjs', main.replace('./drivers.js', './drivers.mjs'))
  return { path, remove: built.remove }
}

function sourceOf(name: string): Promise<string> {
  return readFile(new URL(name, import.meta.url), 'utf8')
}
