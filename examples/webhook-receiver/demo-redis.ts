import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'

/** A Redis of our own that keeps nothing on disk; `null`: there is no redis-server on the PATH. */
export async function startDemoRedis(): Promise<{ readonly url: string; kill(): void } | null> {
  const port = await freePort()
  const child = spawn('redis-server', ['--port', `${port}`, '--save', '', '--appendonly', 'no'], { stdio: 'ignore' })
  let failed = false
  child.once('error', () => {
    failed = true
  })
  child.once('exit', () => {
    failed = true
  })
  while (!failed) {
    if (await accepts(port)) return { url: `redis://127.0.0.1:${port}`, kill: () => void child.kill() }
    await setTimeout(10)
  }
  return null
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
