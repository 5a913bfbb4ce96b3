import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// A server that the files of a worker share cannot be ended by one of them, and workers end without a word. So each notes its
// server in a folder, and the process that started the workers ends all of them.

const FOLDER = 'ONCE_PER_KEY_SERVERS'

/** A process, and the folder with its data. */
export interface RunningServer {
  readonly pid: number
  readonly folder: string
}

/** Asked by each project of this run; a run that a test started has a folder of its own. */
export function shareServers(): void {
  if (!isOfThisRun()) process.env[FOLDER] = mkdtempSync(join(tmpdir(), `once-per-key-servers-${process.pid}-`))
}

function isOfThisRun(): boolean {
  return process.env[FOLDER]?.includes(`-${process.pid}-`) === true
}

export function note(server: RunningServer): void {
  const folder = process.env[FOLDER]
  if (folder === undefined) throw new Error('Servers are shared in runs of vitest alone, whose global setup ends them.')
  writeFileSync(join(folder, `${server.pid}.json`), JSON.stringify(server))
}

/** The first project that ends does it, when all tests have ended. */
export function endServers(): void {
  const noted = process.env[FOLDER]
  if (noted === undefined || !isOfThisRun()) return
  delete process.env[FOLDER]
  for (const name of readdirSync(noted)) {
    const { pid, folder } = JSON.parse(readFileSync(join(noted, name), 'utf8')) as RunningServer
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended already.
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
  rmSync(noted, { recursive: true, force: true })
}
