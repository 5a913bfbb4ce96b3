import type { Server } from 'node:http'
import { inTime } from './in-time.js'

/** Longer than any handler runs; a client that sends its body slower than this is cut off. */
const PATIENCE_MS = 20_000

/** For completions that the store has not confirmed: one that stays away does not hold up the end. */
const IDLE_PATIENCE_MS = 3_000

/**
 * Counts the requests that are being answered, from now on. The function that it returns stops the server: new
 * connections are refused, requests that came in get their answers, and then every connection is closed, those that
 * clients keep open for later included. `false`: some completions were still pending.
 */
export function gracefulShutdown(server: Server, idle: () => Promise<void>): () => Promise<boolean> {
  let open = 0
  let closing = false
  let whenAnswered = () => {}

  // Before the application's own listener: it may change the response.
  server.prependListener('request', (_req, res) => {
    open++
    if (closing) res.setHeader('Connection', 'close')
    res.once('close', () => {
      open--
      if (open === 0) whenAnswered()
    })
  })

  return async function shutDown() {
    closing = true
    const closed = new Promise((resolve) => server.close(resolve))
    const answered = new Promise<void>((resolve) => {
      whenAnswered = resolve
      if (open === 0) resolve()
      setTimeout(resolve, PATIENCE_MS).unref()
    })
    await answered
    server.closeAllConnections()
    await closed
    return inTime(idle(), IDLE_PATIENCE_MS).then(
      () => true,
      () => false,
    )
  }
}
