import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { npm, ROOT, run } from '../support/packed-package.js'
import { type NodeRun, runNodeWith } from '../support/run-node.js'

const PROGRAM = join(ROOT, 'dist/bin/once-per-key.js')
const WITH_SQLITE = join(ROOT, 'test/support/node-sqlite.mjs')

export async function build(): Promise<void> {
  if (!existsSync(PROGRAM)) await run(npm, ['run', '--silent', 'build'], ROOT)
}

/** Runs the command as it was built, to its end; nobody can be asked. */
export function command(args: readonly string[], variables: Readonly<Record<string, string>> = {}): Promise<NodeRun> {
  return runNodeWith(variables, `--import=${WITH_SQLITE}`, PROGRAM, ...args)
}

/**
 * Runs it in a terminal, by `script` of util-linux; `says` is typed when it asks, after what happens `meanwhile`. Resolves with all that
 * was shown; its output may go to a file.
 */
export async function commandInTerminal(
  args: readonly string[],
  says: string,
  outputTo = '/dev/stdout',
  meanwhile = async (): Promise<unknown> => undefined,
) {
  const line = [process.execPath, `--import=${WITH_SQLITE}`, PROGRAM, ...args].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qec', `${line} > '${outputTo}'`, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  let isAsked = false
  child.stdout.setEncoding('utf8').on('data', (text) => {
    shown += text
    if (isAsked || !shown.includes('Type yes:')) return
    isAsked = true
    void meanwhile().then(() => child.stdin.write(`${says}\n`))
  })
  const exitCode = await new Promise<number | null>((resolve) => void child.once('close', resolve))
  return { exitCode, shown, isAsked }
}
