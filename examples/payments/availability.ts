import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import { inTime } from './in-time.js'

/** Whether what the service depends on answers. */
export interface Availability {
  /** What it depends on. */
  readonly name: string
  /** Asks now, for a second at most. */
  check(): Promise<boolean>
  /** What the last look found. */
  isAway(): boolean
}

const ANSWER_MS = 1_000
const EVERY_MS = 2_000

/** Watches a Redis; one line in the log when it goes, and one when it is back, however often the client tries in between. */
export function watchRedis(redis: Redis, logger: Logger): Availability & { stop(): void } {
  let away = false
  let stopped = false
  let reason = ''
  let checking: Promise<boolean> | undefined

  async function look(): Promise<boolean> {
    const answer = redis.status === 'ready' ? redis.ping() : Promise.reject(new Error('Not connected'))
    const failure = await inTime(answer, ANSWER_MS).then(() => null, messageOf)
    if (stopped) return failure === null
    if (failure !== null && !away) logger.warn({ reason: reason || failure }, 'redis is away')
    if (failure === null && away) logger.warn('redis is back')
    away = failure !== null
    reason = ''
    return !away
  }

  function check(): Promise<boolean> {
    checking ??= look().finally(() => {
      checking = undefined
    })
    return checking
  }

  // Of an error only the words: the client's hold the command that failed, be it AUTH.
  redis.on('error', (error) => {
    reason = messageOf(error)
  })
  redis.on('close', check)
  // The look that is under way may have begun before.
  redis.on('ready', () => check().then(check))
  const timer = setInterval(check, EVERY_MS).unref()

  return {
    name: 'redis',
    check,
    isAway: () => away,
    stop() {
      stopped = true
      clearInterval(timer)
    },
  }
}

function messageOf(error: unknown): string {
  const { message, code, name } = error as NodeJS.ErrnoException
  return message || code || name // Where several addresses were tried, there is no message.
}
