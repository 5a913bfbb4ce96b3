import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** Before the effect, between its two writes, and after it. */
export type Point = 'before' | 'inside' | 'after'

export interface Settings {
  readonly key: string
  readonly unknownOutcome: 'rerun' | 'refuse'
  /** Exactly one of them. */
  readonly redisPort?: number
  readonly databaseUrl?: string
  /** Where it waits to be killed; absent: it goes on to its end. */
  readonly stopsAt?: Point
}

/** What a worker tells. */
export type Line =
  | { readonly told: readonly [attempt: number, previousOutcome: string] }
  | { readonly at: Point }
  | { readonly result: unknown }
  | { readonly refused: string; readonly isWorthARetry: boolean }

/** Runs a worker to its end. One that stops at a point is killed (-9) there. All that it told, in order. */
export async function work(program: string, settings: Settings): Promise<Line[]> {
  const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, ...env } = process.env
  const child = spawn(process.execPath, [program, JSON.stringify(settings)], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const lines: Line[] = []
  for await (const text of createInterface(child.stdout)) {
    const line: Line = JSON.parse(text)
    lines.push(line)
    if ('at' in line) child.kill('SIGKILL')
  }
  const [code, signal] = await exited
  const due = settings.stopsAt === undefined ? [0, null] : [null, 'SIGKILL']
  if (`${[code, signal]}` !== `${due}`)
    throw new Error(`The worker ended with ${code ?? signal}: ${JSON.stringify(lines)}`)
  return lines
}
