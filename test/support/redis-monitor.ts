import type { Redis } from 'ioredis'

/** One command that a server heard. */
export interface HeardCommand {
  /** In lower case. */
  readonly name: string
  readonly args: readonly string[]
  /** A client's address, or `lua` for what a script calls. */
  readonly source: string
}

/** Marks the end of what is listened to. */
const LAST = 'echo'

/** What the server of `redis` hears while `work` is done, in order. It is to have no other clients meanwhile. */
export async function heardDuring(redis: Redis, work: () => Promise<unknown>): Promise<HeardCommand[]> {
  // Until ioredis has seen the OK to MONITOR, a command that the server hears is a reply without a question to it
  // ("Command queue state error"): what a client says of its own accord while it connects has to be said before.
  await redis.ping()
  const monitor = await redis.monitor()
  try {
    const heard: HeardCommand[] = []
    const heardLast = new Promise<void>((resolve) => {
      monitor.on('monitor', (_time, [command = '', ...args]: string[], source: string) => {
        const name = command.toLowerCase()
        if (name === LAST) resolve()
        else heard.push({ name, args, source })
      })
    })
    await work()
    await redis.echo('the end')
    await heardLast
    return heard
  } finally {
    monitor.disconnect()
  }
}
