import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import type { BuiltExample } from '../support/built-example.js'

type Line = Readonly<Record<string, unknown>>

/** The example's receiver of webhooks as a process of its own, for one test: without Redis, it remembers in memory. */
export async function startExampleReceiver({ demo }: BuiltExample, variables: Readonly<Record<string, string>>) {
  const { REDIS_URL: _, HOST: __, ...env } = process.env
  const main = join(dirname(demo), 'main.js')
  const child = spawn(process.execPath, [main], { env: { ...env, PORT: '0', ...variables } })
  onTestFinished(() => void child.kill('SIGKILL'))
  const closed = once(child, 'close')
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
  }
  const lines = (): Line[] =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  await vi.waitFor(
    () => {
      if (!text.includes('listening')) throw new Error(`It has not started: ${text}`)
    },
    { interval: 5, timeout: 10_000 },
  )
  return {
    url: lines()[0]?.url as string,
    lines,
    /** The exit code after SIGTERM, once all output has been read. */
    async stop(): Promise<number | null> {
      child.kill('SIGTERM')
      await closed
      return child.exitCode
    },
  }
}
