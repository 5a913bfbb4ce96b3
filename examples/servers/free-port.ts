import { once } from 'node:events'
import { createServer } from 'node:net'
import { threadId } from 'node:worker_threads'

/** Below the ports of outgoing connections (on Linux from 32,768 on): one of those could take it before a server does, or while that restarts. */
const FIRST = 10_100 // `fetch` refuses 10,080.
const COUNT = 22_000
/** Processes and threads begin far from each other. */
let next = (process.pid * 4_999 + threadId * 997) % COUNT

/** A port of 127.0.0.1 that was free a moment ago, and that this thread gets only once. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + next
    next = (next + 1) % COUNT
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
