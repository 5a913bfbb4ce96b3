import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished, vi } from 'vitest'
import type { BuiltExample } from '../support/built-example.js'

/** The example as a process of its own. */
export interface ExampleProcess {
  readonly child: ChildProcess
  readonly origin: string
  /** All that it has printed. */
  output(): string
  /** Its log: JSON lines. */
  log(): Record<string, unknown>[]
  readonly curlLines: readonly string[]
  /** The exit code, once all output has been read; `null` after a kill. */
  exit(): Promise<number | null>
}

/** Starts it for one test, on a free port. Concurrent tests give the `onTestFinished` of their context. */
export async function startExample(
  { main }: Pick<BuiltExample, 'main'>,
  variables: Readonly<Record<string, string>> = {},
  atEnd: (end: () => void) => void = onTestFinished,
): Promise<ExampleProcess> {
  const child = spawn(process.execPath, [main], { env: { ...process.env, PORT: '0', HOST: '', ...variables } })
  atEnd(() => void child.kill('SIGKILL'))
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
  }
  const greeted = () => {
    if (text.match(/^curl .*\n/gm)?.length !== 3) throw new Error(`It has not started: ${text}`)
  }
  await vi.waitFor(greeted, { interval: 5, timeout: 10_000 })
  const [origin = ''] = /http:\/\/\S+:\d+/.exec(text) ?? []

  return {
    child,
    origin,
    output: () => text,
    log: () =>
      text
        .split('\n')
        .filter((line) => line.startsWith('{') && line.endsWith('}'))
        .map((line) => JSON.parse(line)),
    curlLines: text.split('\n').filter((line) => line.startsWith('curl ')),
    async exit() {
      if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
      return child.exitCode
    },
  }
}
