import { execFileSync } from 'node:child_process'
import { chownSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { installedProgram } from './installed-program.js'

let folderOfPrograms: string | undefined

/** Where its programs are; ONCE_PER_KEY_POSTGRES names the folder of another version than the newest that is installed. */
export function postgresFolder(): string {
  folderOfPrograms ??= dirname(
    installedProgram({
      names: ['postgres'],
      folders: [process.env.ONCE_PER_KEY_POSTGRES ?? '', ...debianFolders()].filter((folder) => folder !== ''),
      debianPackage: 'postgresql',
      // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"
      suits: (version) => Number(/ (\d+)\./.exec(version)?.[1]) >= 14,
      need: 'A real Postgres 14 or later is needed (Debian: apt-get install postgresql; macOS: brew install postgresql@17, on the PATH).',
    }),
  )
  return folderOfPrograms
}

/** It is not on the PATH there; the newest first. */
function debianFolders(): string[] {
  try {
    const versions = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a))
    return versions.map((version) => join(DEBIAN, version, 'bin'))
  } catch {
    return []
  }
}

const DEBIAN = '/usr/lib/postgresql'

/** Neither Postgres nor PgBouncer runs as root: then the command runs as the user that Debian's package has made. */
export function asOrdinaryUser(program: string): [command: string, ...args: string[]] {
  const path = program.includes('/') ? program : join(postgresFolder(), program)
  if (process.getuid?.() !== 0) return [path]
  return ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups', path]
}

/** Hands a folder to that user. */
export function giveTo(folder: string): void {
  if (process.getuid?.() !== 0) return
  const [uid, gid] = ['-u', '-g'].map((option) =>
    Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' })),
  )
  chownSync(folder, uid as number, gid as number)
}
