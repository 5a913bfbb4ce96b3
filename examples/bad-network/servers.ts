import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ServiceUnfit } from './books.js'

/** One process of the payments example. */
export interface Server {
  readonly origin: string
  /** -9. */
  kill(): Promise<void>
  /** After a kill: the same address. */
  startAgain(): Promise<void>
}

/** The example that was built beside this program. */
const PROGRAM = fileURLToPath(new URL('../payments/main.js', import.meta.url))
const START_MS = 20_000

/** Starts the example on a free port. It does not outlive this process. */
export async function startServer(variables: Readonly<Record<string, string>>): Promise<Server> {
  let { child, origin } = await startProcess({ ...variables, PORT: '0' })
  return {
    origin,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const closed = once(child, 'close')
      child.kill('SIGKILL')
      await closed
    },
    async startAgain() {
      const started = await startProcess({ ...variables, PORT: new URL(origin).port })
      child = started.child
    },
  }
}

async function startProcess(variables: Readonly<Record<string, string>>) {
  // What is set for the example in this shell is not meant for this one.
  const none = { REDIS_URL: '', DATABASE_URL: '', SQLITE_FILE: '', DEMO_LEASE_MS: '', HOST: '' }
  const env = { ...process.env, ...none, ...variables }
  const child = spawn(process.execPath, [PROGRAM], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  process.once('exit', () => child.kill('SIGKILL'))
  return { child, origin: await originOf(child) }
}

/** As its greeting tells it. What it prints afterwards is read and dropped. */
async function originOf(child: ChildProcess): Promise<string> {
  const streams = [child.stdout, child.stderr]
  let text = ''
  const read = (chunk: string) => {
    text += chunk
  }
  for (const stream of streams) stream?.setEncoding('utf8').on('data', read)
  const end = performance.now() + START_MS
  while (child.exitCode === null && child.signalCode === null && performance.now() < end) {
    // Whole, however it was cut into chunks.
    const [origin] = /http:\/\/localhost:\d+(?=\D)/.exec(text) ?? []
    if (origin === undefined) await setTimeout(10)
    else {
      for (const stream of streams) stream?.off('data', read).resume()
      return origin
    }
  }
  child.kill('SIGKILL')
  throw new ServiceUnfit(`The payments example does not start: ${text.trim().split('\n').at(-1)}`)
}
