import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../servers/free-port.js'

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

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
