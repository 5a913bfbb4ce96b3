import { Redis } from 'ioredis'
import { IdempotencyError } from 'once-per-key'
import { RedisStore, type RedisStoreOptions, type SendCommand } from 'once-per-key/redis'
import { createClient, createCluster } from 'redis'
import { describe, expect, test } from 'vitest'
import { NO_CLIENTS } from '../../versions/redis-clients.js'
import { claimOf, ownOf } from '../claims.js'

const idle = { lazyConnect: true } as const

describe('a wrong client is a mistake that names what was expected:', () => {
  const sendCommand = async () => {}
  test.each<[string, unknown]>([
    ['none', undefined],
    ['null', null],
    ['a connection string', 'redis://localhost'],
    ['a client that was not awaited', Promise.resolve(new Redis(idle))],
    ["ioredis' class", Redis],
    ["node-redis' function", createClient],
    ['a client of node-redis 4, which cannot map types', { sendCommand, commandOptions() {}, get: sendCommand }],
    ['a client of node-redis 3', { send_command: sendCommand, sendCommand, get: sendCommand }],
    ['a pipeline', new Redis(idle).pipeline()],
    ...Object.entries(NO_CLIENTS).map(([name, make]): [string, unknown] => [name, make()]),
    ['a generic pool', { acquire: sendCommand, release: sendCommand }],
    ['options', { host: 'localhost', port: 6379 }],
  ])('%s', (_name, client) => {
    const mistake = mistakeOf({ client } as RedisStoreOptions)
    expect(mistake.code).toBe('options_invalid')
    expect(mistake.message).toMatch(
      /client: expected a client of ioredis 5 or 6 \(Redis or Cluster\) or of redis 5 or 6/,
    )
    expect(mistake.message).toMatch(/give `sendCommand: \(key, args\) => …` that resolves with Buffers; seen: /)
  })

  test('all mistakes are listed at once', () => {
    const { message } = mistakeOf({
      sendCommand: 'GET',
      prefix: 7,
      prefixMayMeetOthers: 1,
      cleint: {},
    } as unknown as RedisStoreOptions)
    expect(message).toMatch(/cleint: did you mean client\?/)
    expect(message).toMatch(/sendCommand: expected a function; seen: "GET"/)
    expect(message).toMatch(/prefix: expected a string; seen: 7/)
    expect(message).toMatch(/prefixMayMeetOthers: expected true or false; seen: 1/)
  })

  test('a client and a sendCommand are one too many', () => {
    const both = { client: createCluster({ rootNodes: [{}] }), sendCommand } as unknown as RedisStoreOptions
    expect(mistakeOf(both).message).toMatch(/client: expected either `client` or `sendCommand`, not both/)
  })

  test.each([[undefined], [null], ['redis://localhost']])('options that are %s', (options) => {
    expect(mistakeOf(options as unknown as RedisStoreOptions).code).toBe('options_invalid')
  })
})

describe('the prefix', () => {
  test.each([
    [undefined, 'once-per-key:k'],
    ['payments:', 'payments:k'],
    ['shop:payments/', 'shop:payments/k'],
  ])('%s makes the key %s', async (prefix, key) => {
    const keys: unknown[] = []
    const sendCommand: SendCommand = async (to, args) => {
      if (args[0] === 'EVALSHA') keys.push(to, args[3])
      return 1
    }
    const store = new RedisStore({ sendCommand, ...(prefix !== undefined && { prefix }) })
    await store.renew('k', { ...ownOf('t'), leaseMs: 1 })
    expect(keys).toEqual([key, key])
  })
})

describe('a reply in another form is a store failure, that says what a sendCommand must reply with:', () => {
  const inFlight = [2, 1, 'f', 0, 5]
  const completed = [3, 1, 'f[]', 1, 0, 200, 1, 'body']
  test.each<[string, unknown]>([
    ['none', undefined],
    ['null', null],
    ['a string', 'OK'],
    ['an object', { 0: 1 }],
    ['an empty list', []],
    ['strings that were decoded', inFlight],
    ['an unknown word', buffers([9, 1, 'f'])],
    ['an unknown outcome', [1, 1, 3]],
    ['a lease that is no number', buffers([...inFlight.slice(0, 4), 'soon'])],
    ['a record that is cut off', buffers(inFlight.slice(0, 4))],
    ['an answer that is cut off', buffers(completed.slice(0, 6))],
    ['a body that was decoded', [...buffers(completed.slice(0, 7)), 'body']],
    ['an attempt of null', [1, null, 0]],
  ])('%s', async (_name, reply) => {
    const store = new RedisStore({ sendCommand: async () => reply })
    await expect(store.begin('k', claimOf('t'))).rejects.toThrow(/must resolve with strings as Buffers/)
  })

  test('integers in digits are integers', async () => {
    const store = new RedisStore({ sendCommand: async () => buffers(inFlight).map((field) => Buffer.from(`${field}`)) })
    const record = { state: 'in-flight', fingerprint: 'f', attempt: 1, uncertain: false, leaseRemainingMs: 5 }
    expect(await store.begin('k', claimOf('t'))).toEqual({ acquired: false, record })
  })
})

/** As a client answers: strings as Buffers. */
function buffers(fields: readonly unknown[]): unknown[] {
  return fields.map((field) => (typeof field === 'string' ? Buffer.from(field) : field))
}

function mistakeOf(options: RedisStoreOptions): IdempotencyError {
  try {
    new RedisStore(options)
  } catch (error) {
    expect(error).toBeInstanceOf(IdempotencyError)
    return error as IdempotencyError
  }
  throw new Error('It was accepted.')
}
