import Mock from 'ioredis-mock'
import { RedisStore } from 'once-per-key/redis'
import { expect, onTestFinished, test } from 'vitest'

// Its Lua lacks what the scripts use, so each command was 503, without a word of why.
test('ioredis-mock is refused by name, with what to use in tests', () => {
  const client = new Mock()
  onTestFinished(() => client.disconnect())
  expect(() => new RedisStore({ client: client as never })).toThrow(
    /seen: a client of ioredis-mock, .* in tests use new MemoryStore\(\) of once-per-key\/memory/,
  )
})
