import { pino } from 'pino'
import { openRedis } from '../../examples/payments/redis.js'

export type RedisGround = Awaited<ReturnType<typeof openGround>>

/** Store and ledger of one process, in the test's own. */
export function openGround({ port }: { readonly port: number }) {
  return openRedis({ host: '127.0.0.1', port, db: 0 }, pino({ level: 'silent' }))
}
