import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'
import type { ClientLibrary } from './default-clients.js'
import { request } from './raw-client.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface Settings {
  readonly library: ClientLibrary['name']
  readonly redisPort: number
}

/** One run of the handler, which has ended. */
export interface Run {
  readonly id: string
  readonly attempt: number
  readonly previousOutcome: string
  readonly outcome: 'succeeded' | 'threw'
}

/** A real process that receives `merchant_updated`: one of the category 'waits' waits, one that 'throws first' does. */
export interface ReceiverProcess {
  readonly port: number
  /** Resolves when a handler of this process waits. */
  readonly waits: Promise<void>
  /** Lets handlers that wait go on. */
  wake(): void
  /** The runs that have ended, in order. */
  runs(): Promise<readonly Run[]>
  /** Kills it (-9), and resolves when it is gone. */
  kill(): Promise<void>
}

export interface BuiltReceiver {
  start(settings: Settings): Promise<ReceiverProcess>
  /** Ends what was started, and removes what was built. */
  remove(): Promise<void>
}

/** Builds the program from today's sources, once for many processes. */
export async function buildReceiver(): Promise<BuiltReceiver> {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-receiver-'))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction')
  await build({
    entry: { receiver: join(ROOT, 'test/support/receiver-process.main.ts') },
    outDir: folder,
    outExtension: () => ({ js: '.mjs' }),
    format: 'esm',
    target: 'node20',
    external: ['ioredis', 'redis', 'zod'],
    noExternal: [/^once-per-key/],
    esbuildOptions(options) {
      options.alias = {
        'once-per-key/redis': join(ROOT, 'adapters/redis/index.ts'),
        'once-per-key/webhooks': join(ROOT, 'src/webhooks/index.ts'),
      }
    },
    config: false,
    silent: true,
    clean: false,
  })
  const started = new Set<ReceiverProcess>()
  return {
    async start(settings) {
      const receiver = await startReceiver(join(folder, 'receiver.mjs'), settings)
      started.add(receiver)
      return receiver
    },
    async remove() {
      await Promise.all([...started].map((receiver) => receiver.kill()))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

type Message = { readonly type: 'listening'; readonly port: number } | { readonly type: 'waits' }

async function startReceiver(program: string, settings: Settings): Promise<ReceiverProcess> {
  const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, ...env } = process.env
  const child = spawn(process.execPath, [program, JSON.stringify(settings)], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  let waits: Promise<void> = Promise.resolve()
  const port = await new Promise<number>((resolve, reject) => {
    waits = new Promise((resolveWaits) => {
      child.on('message', (message: Message) => {
        if (message.type === 'listening') resolve(message.port)
        else resolveWaits()
      })
    })
    child.once('exit', (code) => reject(new Error(`The receiver ended with ${code} before it listened.`)))
  })

  return {
    port,
    waits,
    wake: () => void child.send('go on'),
    runs: async () => (await request(port, { method: 'GET', path: '/runs' })).json() as Run[],
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
