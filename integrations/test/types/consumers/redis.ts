// Without any client's package: a sendCommand of one's own.
import { type RedisClient, RedisStore, type RedisStoreOptions, type SendCommand } from 'once-per-key/redis'

const sendCommand: SendCommand = async (key, args) => [Buffer.from(key), args.length]
export const options: RedisStoreOptions[] = [{ sendCommand }, { sendCommand, prefix: 'payments:' }]
export const store = new RedisStore({ sendCommand })
export declare const client: RedisClient
new RedisStore({ client, prefix: undefined })

// @ts-expect-error a client or a sendCommand is required
new RedisStore({})
// @ts-expect-error one of the two
new RedisStore({ client, sendCommand })
// @ts-expect-error not a client
new RedisStore({ client: 'redis://localhost' })
// @ts-expect-error no such option
new RedisStore({ client, keyPrefix: 'payments:' })
// @ts-expect-error a promise of the reply
new RedisStore({ sendCommand: () => 'OK' })
