import { type ExecFileSyncOptions, execFileSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

/** Built programs run from the project's root. */
const FOLDER = join(process.cwd(), 'verification/bench')

/** The generator and the peers, by the lock file of the benchmark's own; the library never sees them. */
export function installPeers(): void {
  installFromLockFile()
  // For what imports a framework of the peers' version: as an installed package it finds the same one.
  const copy = join(FOLDER, 'node_modules/once-per-key')
  rmSync(copy, { recursive: true, force: true })
  for (const part of ['package.json', 'dist']) cpSync(part, join(copy, part), { recursive: true })
}

function installFromLockFile(): void {
  if (Object.keys(readDependencies()).every((name) => existsSync(join(FOLDER, 'node_modules', name)))) return
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
  return readDependencies()[name] as string
}

function readDependencies(): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(join(FOLDER, 'package.json'), 'utf8')).dependencies
}
