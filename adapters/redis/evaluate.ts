import type { Buffer } from 'node:buffer'
import type { SendCommand } from './client.js'
import type { Script } from './scripts.js'

/** The arguments of a script, behind its key. */
export type Arguments = readonly (string | Buffer)[]

/**
 * Runs the script by its digest. A server without the script (new, restarted, failed over) gets its text once. One
 * promise more than the client's: it resolves with what `heard` or `failed` returns.
 */
export function evaluate<Result>(
  send: SendCommand,
  { sha1, text }: Script,
  redisKey: string,
  args: Arguments,
  heard: (reply: unknown) => Result,
  failed: (error: unknown) => Result,
): Promise<Result> {
  return send(redisKey, ['EVALSHA', sha1, '1', redisKey, ...args]).then(heard, (error) => {
    if (!isNoScript(error)) return failed(error)
    return send(redisKey, ['EVAL', text, '1', redisKey, ...args]).then(heard, failed)
  })
}

/** What the application's function throws counts as rejected, and what it returns as resolved. */
export function promising(sendCommand: SendCommand): SendCommand {
  return (key, args) => {
    try {
      return Promise.resolve(sendCommand(key, args))
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

export function rethrow(error: unknown): never {
  throw error
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
