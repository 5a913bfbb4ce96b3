import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runs } from '../../../examples/servers/installed-program.js'

const KEPT = join(tmpdir(), 'once-per-key-promtool')

let found: string | undefined

/**
 * Prometheus' promtool: the one on the PATH, or else taken out of Debian's package, which is not installed for it, since that
 * would start a server.
 */
export function promtool(): string {
  found ??= runs('promtool') ? 'promtool' : fromThePackage()
  return found
}

function fromThePackage(): string {
  const kept = join(KEPT, 'usr/bin/promtool')
  if (existsSync(kept)) return kept
  const folder = `${KEPT}-${process.pid}`
  mkdirSync(folder, { recursive: true })
  try {
    execFileSync('apt-get', ['download', 'prometheus'], { cwd: folder, stdio: 'pipe' })
    const name = readdirSync(folder).find((file) => file.endsWith('.deb')) ?? ''
    execFileSync('dpkg-deb', ['-x', name, '.'], { cwd: folder, stdio: 'pipe' })
  } catch (error) {
    throw new Error('The tests of the alerts need promtool on the PATH (Debian: it is in the package prometheus).', {
      cause: error,
    })
  }
  if (!existsSync(kept)) renameSync(folder, KEPT)
  return kept
}
