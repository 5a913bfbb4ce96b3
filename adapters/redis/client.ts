import { Buffer } from 'node:buffer'
import { isFunction } from '../../src/core/validation.js'

/**
 * Sends one command, to the node that has the key, and answers with its reply in which every string is a Buffer. What
 * `ioredis` and `redis` (node-redis) clients are turned into; give one of your own for any other client.
 */
export type SendCommand = (key: string, args: readonly (string | Buffer)[]) => Promise<unknown>

/** ioredis 5 or 6: `Redis` or `Cluster`. */
interface Ioredis {
  callBuffer(command: string, ...args: (string | Buffer)[]): Promise<unknown>
}

/** node-redis 5 or 6: a client, a cluster or a sentinel. Their `sendCommand` differ by what stands before the command. */
interface NodeRedis {
  // biome-ignore lint/suspicious/noExplicitAny: three signatures under one name
  sendCommand(...args: any[]): Promise<unknown>
}

export type RedisClient = Ioredis | NodeRedis

export const EXPECTED_CLIENT =
  'a client of ioredis (Redis or Cluster) or of redis (client, cluster or sentinel); for another one give ' +
  '`sendCommand: (key, args) => …` that answers with Buffers'

/** `null`: no client that is known. */
export function senderOf(client: unknown): SendCommand | null {
  if (typeof client !== 'object' || client === null) return null
  // ioredis has a sendCommand too, with another meaning: so this first.
  if (has(client, 'callBuffer'))
    return (_key, [name = '', ...args]) => (client as Ioredis).callBuffer(name as string, ...args)
  if (!has(client, 'sendCommand')) return null
  const redis = client as NodeRedis
  if ('slots' in client) return (key, args) => redis.sendCommand(key, false, args, AS_BUFFERS)
  if ('getSentinelNode' in client) return (_key, args) => redis.sendCommand(false, args, AS_BUFFERS)
  return (_key, args) => redis.sendCommand(args, AS_BUFFERS)
}

/** RESP's type bytes: strings are decoded as UTF-8 unless asked for as Buffers. */
const AS_BUFFERS = { typeMapping: Object.fromEntries(['$', '+', '='].map((type) => [type.charCodeAt(0), Buffer])) }

function has(client: object, method: string): boolean {
  return isFunction((client as Record<string, unknown>)[method]) === null
}
