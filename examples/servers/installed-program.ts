import { execFileSync } from 'node:child_process'
import { delimiter, join } from 'node:path'

export interface Program {
  /** What it may be called on the PATH; the first that runs is taken. */
  readonly names: readonly string[]
  /** Folders besides those of the PATH, looked through first. */
  readonly folders?: readonly string[]
  readonly debianPackage: string
  /** Whether what it says to `--version` is good enough. */
  readonly suits?: (version: string) => boolean
  /** What to tell who has none of them, in a line. */
  readonly need: string
}

/** Where it is; on Debian as root it is installed when it is missing. Never skipped silently. */
export function installedProgram(program: Program): string {
  return found(program) ?? install(program)
}

export function runs(path: string, suits: (version: string) => boolean = () => true): boolean {
  try {
    return suits(execFileSync(path, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
  } catch {
    return false
  }
}

function found({ names, folders: others = [], suits }: Program): string | undefined {
  const folders = [...others, ...(process.env.PATH ?? '').split(delimiter)]
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => runs(path, suits))
}

function install(program: Program): string {
  const { debianPackage, need } = program
  if (process.getuid?.() !== 0) throw new Error(need)
  try {
    const options = { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } } as const
    execFileSync('apt-get', ['update', '-qq'], options)
    execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', debianPackage], options)
  } catch (cause) {
    throw new Error(need, { cause })
  }
  const installed = found(program)
  if (installed === undefined) throw new Error(need)
  return installed
}
