import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { SqliteStore } from 'once-per-key/sqlite'
import { buildProgram } from './built-program.js'
import type { DriverName } from './drivers.js'

export interface Request {
  readonly number: number
  readonly command: 'open' | keyof SqliteStore
  readonly args: readonly unknown[]
}

export type Response = { readonly number: number } & ({ readonly reply: unknown } | { readonly error: string })

/** A store in a process of its own. */
export interface StoreProcess extends Pick<SqliteStore, 'begin' | 'renew' | 'complete' | 'release'> {
  /** From now on its records are in this file. */
  open(file: string): Promise<void>
  /** Kills it (-9). What it has not answered by then is never answered. */
  kill(): Promise<void>
}

export interface StoreProcesses {
  start(driver: DriverName): StoreProcess
  /** Ends those that run still. */
  remove(): Promise<void>
}

/** Builds the program from today's sources, once for many processes. */
export async function storeProcesses(): Promise<StoreProcesses> {
  const program = await buildProgram('store-process.main.ts')
  const started: StoreProcess[] = []
  return {
    start(driver) {
      const one = start(program.path, driver)
      started.push(one)
      return one
    },
    async remove() {
      await Promise.all(started.map((one) => one.kill()))
      await program.remove()
    },
  }
}

function start(program: string, driver: DriverName): StoreProcess {
  const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, ...env } = process.env
  const child = spawn(process.execPath, ['--no-warnings', program, driver], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // Answers hold bytes.
    serialization: 'advanced',
  })
  const exited = once(child, 'exit')
  const waiting = new Map<number, { resolve(reply: unknown): void; reject(error: Error): void }>()
  child.on('message', (response: Response) => {
    const { resolve, reject } = waiting.get(response.number) as {
      resolve(reply: unknown): void
      reject(error: Error): void
    }
    waiting.delete(response.number)
    if ('error' in response) reject(new Error(response.error))
    else resolve(response.reply)
  })
  let requests = 0
  // biome-ignore lint/suspicious/noExplicitAny: each command has a reply of its own
  const send = (command: Request['command'], ...args: unknown[]): Promise<any> =>
    new Promise((resolve, reject) => {
      const number = requests++
      waiting.set(number, { resolve, reject })
      if (child.connected) child.send({ number, command, args } satisfies Request)
    })
  return {
    open: (file) => send('open', file),
    begin: (key, claim) => send('begin', key, claim),
    renew: (key, own) => send('renew', key, own),
    complete: (key, own) => send('complete', key, own),
    release: (key, own) => send('release', key, own),
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
