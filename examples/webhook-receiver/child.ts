import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export interface Child {
  readonly process: ChildProcess
  /** Its JSON lines so far. */
  lines(): readonly Line[]
  /** Resolves with what `find` finds in its output; rejects if it ends before, or after a minute. */
  until<T>(find: (lines: readonly Line[], text: string) => T | undefined | false): Promise<T>
  /** -9. */
  kill(): Promise<void>
}

export type Line = Readonly<Record<string, unknown>>

const PATIENCE_MS = 60_000

/** Starts a program that was built beside this one. */
export function startChild(program: string, variables: Readonly<Record<string, string>>): Child {
  const { REDIS_URL: _, HOST: __, ...env } = process.env
  const path = fileURLToPath(new URL(program, import.meta.url))
  const child = spawn(process.execPath, [path], {
    env: { ...env, ...variables },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })

  const lines = () =>
    text
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Line)

  return {
    process: child,
    lines,
    async until(find) {
      const end = performance.now() + PATIENCE_MS
      while (performance.now() < end) {
        const found = find(lines(), text)
        if (found !== undefined && found !== false) return found
        if (child.exitCode !== null || child.signalCode !== null) break
        await setTimeout(5)
      }
      throw new Error(`${program} did not get there:\n${text}`)
    },
    async kill() {
      child.kill('SIGKILL')
      await closed
    },
  }
}
