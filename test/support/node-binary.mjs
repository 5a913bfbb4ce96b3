import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Outside of the clone, which stays light, and for all clones of a user: a program has some 100 to 200 MB. */
const PROGRAMS = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'once-per-key')
const WINDOWS = process.platform === 'win32'

/** The major versions that the package supports: as in the workflows. */
export const NODES = [20, 22, 24, 26]
export const OWN_NODE = Number.parseInt(process.versions.node, 10)

export function installNode(version) {
  const name = `node-${WINDOWS ? 'win' : process.platform}-${process.arch}`
  return installProgram(name, version, join(name, WINDOWS ? 'bin/node.exe' : 'bin/node'))
}

export function installProgram(name, version, program) {
  const folder = join(PROGRAMS, `${name}-${version}`)
  const path = join(folder, 'node_modules', program)
  if (existsSync(path)) return path
  mkdirSync(PROGRAMS, { recursive: true })
  const fresh = mkdtempSync(join(PROGRAMS, '.new-'))
  try {
    writeFileSync(join(fresh, 'package.json'), '{ "private": true }')
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', fresh, `${name}@${version}`]
    spawnSync('npm', args, { cwd: fresh, stdio: ['ignore', 'ignore', 'inherit'], shell: WINDOWS })
    // Whole, or not at all; if another process was first, its program is used.
    if (existsSync(join(fresh, 'node_modules', program)) && !existsSync(path)) renameSync(fresh, folder)
  } catch (error) {
    if (!existsSync(path)) throw error
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  return existsSync(path) ? path : undefined
}
