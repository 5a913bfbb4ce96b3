import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { type BuiltProgram, buildProgram } from '../../support/built-program.js'
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js'

export interface ServiceSettings {
  readonly dialect: 'mysql' | 'postgres'
  /** Of the database, by a way that may lose what it likes. */
  readonly uri: string
  readonly effects: 'assumed' | 'in-transaction'
}

/** What a service is asked for. */
export interface Asked {
  readonly number: number
  readonly key: string
}

/** What a service tells. `working`: an effect is written, and not committed. */
export type Said =
  | { readonly type: 'ready' | 'working' }
  | { readonly type: 'paid'; readonly number: number; readonly id: string }
  | { readonly type: 'failed'; readonly number: number }

/** A service whose connections pass a proxy, in a process that is killed and started again. */
export interface PayingService {
  readonly proxy: FaultProxy
  /** Rejects where it was refused, or where the process is killed meanwhile. */
  pay(key: string): Promise<string>
  /**
   * Kills the process (-9) the next time that it is in the work of a transaction. Resolves when another has taken its place;
   * `false`: it did not come to its work within the time, as where the server is away.
   */
  killInWork(withinMs: number): Promise<boolean>
  close(): Promise<void>
}

export function buildPayingService(): Promise<BuiltProgram> {
  return buildProgram('test/adapters/sql/paying-service.main.ts', ['mysql2', 'mysql2/promise', 'pg'])
}

export async function startPayingService(
  program: string,
  serverPort: number,
  { uri, ...others }: ServiceSettings,
): Promise<PayingService> {
  const proxy = await startFaultProxy(serverPort)
  const settings = { uri: uri.replace(`:${serverPort}`, `:${proxy.port}`), ...others }
  const waiting = new Map<number, { resolve(id: string): void; reject(error: Error): void }>()
  let asked = 0
  let whenWorking: (() => void) | undefined
  let child = await start()

  async function start(): Promise<ChildProcess> {
    const started = spawn(process.execPath, [program, JSON.stringify(settings)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    await once(started, 'message')
    started.on('message', (said: Said) => {
      if (said.type === 'working') whenWorking?.()
      if (said.type === 'paid') waiting.get(said.number)?.resolve(said.id)
      if (said.type === 'failed') waiting.get(said.number)?.reject(new Error('The service refused.'))
    })
    return started
  }

  /** Whoever waits for it is told that it has gone. */
  async function kill(): Promise<void> {
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
    for (const { reject } of waiting.values()) reject(new Error('The service was killed.'))
  }

  return {
    proxy,
    pay(key) {
      const number = asked++
      const told = new Promise<string>((resolve, reject) => waiting.set(number, { resolve, reject }))
      child.send({ number, key } satisfies Asked, (error) => {
        // It has gone, and another has not taken its place yet.
        if (error !== null) waiting.get(number)?.reject(error)
      })
      return told.finally(() => waiting.delete(number))
    },
    async killInWork(withinMs) {
      const working = new Promise<boolean>((resolve) => {
        whenWorking = () => resolve(true)
      })
      const isWorking = await Promise.race([working, pause(withinMs, false)])
      whenWorking = undefined
      if (!isWorking) return false
      await kill()
      child = await start()
      return true
    },
    async close() {
      await kill()
      await proxy.close()
    },
  }
}
