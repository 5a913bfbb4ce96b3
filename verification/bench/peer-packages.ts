import { type ExecFileSyncOptions, execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

/** Built programs run from the project's root. */
const FOLDER = join(process.cwd(), 'verification/bench')

/** The generator and the peers, by the lock file of the benchmark's own; the library never sees them. */
export function installPeers(): void {
  if (existsSync(join(FOLDER, 'node_modules'))) return
  console.log('Installing what is compared with (once) …')
  const quietly: ExecFileSyncOptions = { stdio: ['ignore', 'ignore', 'inherit'] }
  execFileSync('npm', ['ci', '--prefix', FOLDER, '--no-audit', '--no-fund'], quietly)
  execFileSync('npm', ['rebuild', '--prefix', FOLDER, 'better-sqlite3'], quietly)
}

/** Its types are declared where it is used, so that the project type-checks without it. */
export function loadPeer<Exports>(name: string): Exports {
  return createRequire(join(FOLDER, 'package.json'))(name) as Exports
}

export function peerVersion(name: string): string {
  const { dependencies } = JSON.parse(readFileSync(join(FOLDER, 'package.json'), 'utf8'))
  return dependencies[name]
}
