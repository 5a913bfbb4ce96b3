import type { SendCommand } from 'once-per-key/redis'

/**
 * Makes a record older: what is left of its lease and of its retention gets shorter by `ms`. To the scripts it is as if
 * Redis' clock, which cannot be moved, had moved on.
 */
export async function age(send: SendCommand, key: string, ms: number): Promise<void> {
  await send(key, ['EVAL', AGE, '1', key, `${ms}`])
}

const AGE = `
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
local left = redis.call('PTTL', KEYS[1]) - ARGV[1]
if left <= 0 then return redis.call('DEL', KEYS[1]) end
local rest, fields = cmsgpack.unpack_one(value, 1)
if fields[1] == 'in-flight' then
  fields[6] = fields[6] - ARGV[1]
  value = string.sub(value, 1, 1) .. cmsgpack.pack(fields)
end
redis.call('SET', KEYS[1], value, 'PX', left)
return 1
`
