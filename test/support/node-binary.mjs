import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const FOLDER = join(ROOT, 'node_modules/.other-nodes')
const WINDOWS = process.platform === 'win32'

/** The path of a real binary of that version, from the registry that npm is set to. */
export function installNode(version) {
  const prefix = join(FOLDER, String(version))
  const name = `node-${WINDOWS ? 'win' : process.platform}-${process.arch}`
  const node = join(prefix, 'node_modules', name, WINDOWS ? 'bin/node.exe' : 'bin/node')
  if (!existsSync(node)) {
    mkdirSync(prefix, { recursive: true })
    writeFileSync(join(prefix, 'package.json'), '{ "private": true }')
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', prefix, `${name}@${version}`]
    spawnSync('npm', args, { cwd: prefix, stdio: ['ignore', 'ignore', 'inherit'], shell: WINDOWS })
  }
  return existsSync(node) ? node : undefined
}
