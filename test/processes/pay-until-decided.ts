import type { RawReply } from '../support/raw-client.js'
import type { ServerProcess } from '../support/server-process.js'

/** Sends it again for as long as it is told to come back, as a client does that obeys `X-Should-Retry`. */
export async function payUntilDecided(server: ServerProcess, key: string): Promise<RawReply> {
  while (true) {
    const reply = await server.pay(key)
    if (reply.header('X-Should-Retry') !== 'true') return reply
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
