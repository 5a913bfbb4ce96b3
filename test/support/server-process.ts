import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { IdempotencyEvent, IdempotencyOptions } from 'once-per-key'
import { buildProgram } from './built-program.js'
import type { ClientLibrary } from './default-clients.js'
import { type RawReply, request } from './raw-client.js'

export interface Settings {
  /** Stands in the answers of this process. */
  readonly name: string
  readonly library: ClientLibrary['name']
  readonly redisPort: number
  /** Whether its handler waits until it is woken. */
  readonly waits?: boolean
  readonly options?: Partial<Omit<IdempotencyOptions, 'store' | 'scope' | 'onEvent'>>
}

/** What a process tells of itself. */
export type Message =
  | { readonly type: 'listening'; readonly port: number }
  | { readonly type: 'run'; readonly attempt: number; readonly previousOutcome: string }
  | { readonly type: 'event'; readonly event: IdempotencyEvent['type'] }
  | { readonly type: 'aborted' }
  | { readonly type: 'woken'; readonly signalHasAborted: boolean }
  | { readonly type: 'closing' }
  | { readonly type: 'idle' }

/** A real process that serves `POST /pay`. */
export interface ServerProcess {
  readonly port: number
  /** All that it told, in order. */
  readonly messages: readonly Message[]
  pay(key: string): Promise<RawReply>
  /** Resolves with the first message that is like this one, be it past or to come. */
  told<Type extends Message['type']>(like: Partial<Message> & { type: Type }): Promise<Extract<Message, { type: Type }>>
  /** Lets a handler that waits go on. */
  wake(): void
  signal(signal: NodeJS.Signals): void
  /** Its exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>
  /** Kills it (-9), and resolves when it is gone. */
  kill(): Promise<void>
}

export interface BuiltServer {
  start(settings: Settings): Promise<ServerProcess>
  /** Ends what was started, and removes what was built. */
  remove(): Promise<void>
}

/** Builds the program from today's sources, once for many processes. */
export async function buildServer(): Promise<BuiltServer> {
  const program = await buildProgram('test/support/server-process.main.ts', ['express', 'ioredis', 'redis'])
  const started = new Set<ServerProcess>()
  return {
    async start(settings) {
      const server = await startServer(program.file, settings)
      started.add(server)
      return server
    },
    async remove() {
      await Promise.all([...started].map((server) => server.kill()))
      await program.remove()
    },
  }
}

async function startServer(program: string, settings: Settings): Promise<ServerProcess> {
  const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, ...env } = process.env
  const child = spawn(process.execPath, [program, JSON.stringify(settings)], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit').then(([code, signal]) => code ?? signal)
  const { messages, told } = listenTo(child)
  const { port } = await told({ type: 'listening' })

  return {
    port,
    messages,
    told,
    exited,
    pay: (key) => request(port, { path: '/pay', key }),
    wake: () => void child.send('go on'),
    signal: (signal) => void child.kill(signal),
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

function listenTo(child: ChildProcess): Pick<ServerProcess, 'messages' | 'told'> {
  const messages: Message[] = []
  const waiting = new Set<() => void>()
  const lookAgain = () => {
    for (const look of waiting) look()
  }
  child.on('message', (message) => {
    messages.push(message as Message)
    lookAgain()
  })
  child.on('exit', lookAgain)

  return {
    messages,
    told: (like) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = messages.find((message) => isLike(message, like))
          const hasExited = child.exitCode !== null || child.signalCode !== null
          if (found === undefined && !hasExited) return
          waiting.delete(look)
          // biome-ignore lint/suspicious/noExplicitAny: found by its type
          if (found !== undefined) resolve(found as any)
          else
            reject(new Error(`The process ended before it told ${JSON.stringify(like)}: ${JSON.stringify(messages)}`))
        }
        waiting.add(look)
        look()
      }),
  }
}

function isLike(message: Message, like: Partial<Message>): boolean {
  return Object.entries(like).every(([name, value]) => (message as Record<string, unknown>)[name] === value)
}
