import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

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
  const binary = redisBinary()
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-redis-'))
  const port = await freePort()
  let child: ChildProcess

  async function start(): Promise<void> {
    const args = ['--port', `${port}`, '--dir', folder, '--save', '', '--appendonly', 'yes', '--appendfsync', 'always']
    child = spawn(binary, [...args, ...extraArgs], { stdio: 'ignore' })
    await accepting(port, child)
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

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

let found: string | undefined

/** The server on the PATH; on Debian as root it is installed when it is missing. Never skipped silently. */
export function redisBinary(): string {
  found ??= whichRedis() ?? installRedis()
  return found
}

function whichRedis(): string | null {
  for (const name of ['redis-server', 'valkey-server']) {
    try {
      execFileSync(name, ['--version'], { stdio: 'ignore' })
      return name
    } catch {}
  }
  return null
}

function installRedis(): string {
  const how =
    'The tests need a real redis-server on the PATH (Debian: apt-get install redis-server; macOS: brew install redis).'
  if (process.getuid?.() !== 0) throw new Error(how)
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    execFileSync('apt-get', ['update', '-qq'], { stdio: 'ignore', env })
    execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'], {
      stdio: 'ignore',
      env,
    })
  } catch (cause) {
    throw new Error(how, { cause })
  }
  const installed = whichRedis()
  if (installed === null) throw new Error(how)
  return installed
}

async function accepting(port: number, child: ChildProcess): Promise<void> {
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
  throw new Error(`redis-server exited with code ${child.exitCode} before it was ready.`)
}
