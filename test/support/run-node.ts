import { spawn } from 'node:child_process'

export interface NodeRun {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a real Node process to its end. The variables of this test run stay out of it. */
export function runNode(...args: readonly string[]): Promise<NodeRun> {
  return runNodeWith({}, ...args)
}

/** The same with variables of its own. */
export async function runNodeWith(
  variables: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<NodeRun> {
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, NODE_V8_COVERAGE: ___, ...env } = process.env
  const child = spawn(process.execPath, args, { env: { ...env, ...variables }, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve)
  })
  return { exitCode, stdout, stderr }
}
