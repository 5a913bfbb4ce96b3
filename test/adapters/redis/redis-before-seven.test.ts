import { Redis } from 'ioredis'
import { RedisStore, type SendCommand } from 'once-per-key/redis'
import { afterAll, expect, test } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import { claimOf } from '../claims.js'

const server = await startRedis()
const redis = new Redis(server.port)
afterAll(async () => {
  redis.disconnect()
  await server.close()
})

// A claim needs no flags, so it succeeded on Redis 6, where no script with flags compiles: each handler ran and was answered
// for, no completion was ever stored, and every retry ran again.

/** What Redis 6 lacks, taken from the server: flags on a script's first line, and the number of its version. */
const sendToRedis6: SendCommand = (_key, [name, script, ...args]) => {
  if (name !== 'EVAL') return Promise.reject(new Error('NOSCRIPT No matching script. Please use EVAL.'))
  if (String(script).startsWith('#!')) return Promise.reject(new Error('ERR Error compiling script'))
  return redis.callBuffer('EVAL', `${WITHOUT_VERSION}${script}`, ...args)
}

const WITHOUT_VERSION = `
local of_server = redis
local redis = setmetatable({}, {
  __index = function(_, name) return name ~= 'REDIS_VERSION_NUM' and of_server[name] or nil end
})
`

test('a server before Redis 7, where no owner could end its record, is refused at the claim', async () => {
  const store = new RedisStore({ sendCommand: sendToRedis6 })
  await expect(store.begin('k', claimOf('t1'))).rejects.toThrow(/needs Redis 7 or later, or Valkey/)
  expect(await redis.keys('*')).toEqual([])
})
