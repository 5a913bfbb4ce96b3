import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../examples/servers/free-port.js'
import { installedProgram } from '../../examples/servers/installed-program.js'

/** A real Redis process of the test's own. */
export interface RedisServer {
  readonly port: number
  readonly url: string
  /** Stops it as a signal would: SIGSTOP and SIGCONT pause it, SIGKILL kills it. */
  signal(signal: NodeJS.Signals): void
  /** Kills it (-9), and resolves when it is gone. */
  kill(): Promise<void>
  /** Starts it again after a kill or a shutdown: on the same port, with the data that it kept. */
  restart(options?: { readonly empty?: boolean }): Promise<void>
  close(): Promise<void>
}

/** Starts a server on a free port; its data is kept in an append-only file, synced with every write. */
export async function startRedis(...extraArgs: readonly string[]): Promise<RedisServer> {
  const program = redisBinary()
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-redis-'))
  const port = await freePort()
  let child: ChildProcess

  async function start(): Promise<void> {
    const args = ['--port', `${port}`, '--dir', folder, '--save', '', '--appendonly', 'yes', '--appendfsync', 'always']
    const log = openSync(join(folder, 'log'), 'a')
    child = spawn(program, [...args, ...extraArgs], { stdio: ['ignore', log, log] })
    closeSync(log)
    await accepting(port, child, folder)
  }

  async function stop(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  await start()
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    signal: (signal) => void child.kill(signal),
    kill: stop,
    async restart({ empty = false } = {}) {
      await stop()
      if (empty) rmSync(join(folder, 'appendonlydir'), { recursive: true, force: true })
      await start()
    },
    async close() {
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export { freePort }

let binary: string | undefined

/** `ONCE_PER_KEY_REDIS_SERVER` names another than the installed one: of another version, or of Valkey. */
export function redisBinary(): string {
  binary ??=
    process.env.ONCE_PER_KEY_REDIS_SERVER ??
    installedProgram({
      names: ['redis-server', 'valkey-server'],
      debianPackage: 'redis-server',
      // "Redis server v=7.0.15 …", "Valkey server v=8.0.1 …"
      suits: (version) => Number(/ v=(\d+)\./.exec(version)?.[1]) >= 7,
      need: 'The tests need a real redis-server 7 or later on the PATH (Debian: apt-get install redis-server; macOS: brew install redis).',
    })
  return binary
}

async function accepting(port: number, child: ChildProcess, folder: string): Promise<void> {
  while (child.exitCode === null) {
    const socket = connect(port, '127.0.0.1')
    const [event] = await Promise.race([once(socket, 'connect').then(() => ['connect']), once(socket, 'error')])
    if (event !== 'connect') {
      await new Promise((resolve) => setTimeout(resolve, 5))
      continue
    }
    socket.write('PING\r\n')
    const [answer] = await once(socket, 'data')
    socket.destroy()
    if (String(answer).startsWith('+PONG')) return
  }
  throw new Error(`redis-server exited with code ${child.exitCode}: ${readFileSync(join(folder, 'log'), 'utf8')}`)
}
