import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'

/** A database server of one's own, on a free port of 127.0.0.1, with its data in a temporary folder. */
export interface OwnServer {
  readonly port: number
  /** With its data and its log. */
  readonly folder: string
  /** Of the superuser. */
  url(database?: string): string
  /** Its first process; it has another one after each start. */
  pid(): number
  /** Again, after `stop`: with the data that it kept. */
  start(): Promise<void>
  /** As a crash would: without a word to its clients. */
  stop(): Promise<void>
  /** At once, and its data with it: for the end of this process. */
  remove(): void
}

interface Given extends Pick<OwnServer, 'port' | 'folder' | 'url'> {
  readonly program: string
  readonly args: readonly string[]
  /** What it is called in the message of an error. */
  readonly name?: string
  /** What ends it as a crash would. */
  readonly crash: NodeJS.Signals
  /** Whether it accepts connections. */
  accepts(url: string): Promise<boolean>
}

/** Resolves when the server accepts connections. */
export async function startServer({
  port,
  folder,
  url,
  program,
  args,
  crash,
  accepts,
  ...rest
}: Given): Promise<OwnServer> {
  const { name = basename(program) } = rest
  let child: ChildProcess

  async function start(): Promise<void> {
    const log = openSync(join(folder, 'log'), 'a')
    child = spawn(program, args, { stdio: ['ignore', log, log], cwd: folder })
    while (child.exitCode === null) {
      if (await accepts(url())) return
      await setTimeout(20)
    }
    throw new Error(`${name} exited with code ${child.exitCode}: ${readFileSync(join(folder, 'log'), 'utf8')}`)
  }

  const isRunning = () => child.exitCode === null && child.signalCode === null

  await start()
  return {
    port,
    folder,
    url,
    pid: () => child.pid as number,
    start,
    async stop() {
      if (!isRunning()) return
      const exited = once(child, 'exit')
      child.kill(crash)
      await exited
    },
    remove() {
      if (isRunning()) child.kill(crash)
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
