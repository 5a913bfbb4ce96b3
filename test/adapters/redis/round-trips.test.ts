import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { heardDuring } from '../../support/redis-monitor.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'

describe('RedisStore', async () => {
  let server: RedisServer
  let redis: Redis
  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.port)
  })
  afterAll(async () => {
    redis.disconnect()
    await server.close()
  })
  const openStore = () => new RedisStore({ client: redis, prefix: 'p:' })

  /** What the server is asked for while `work` is done, command by command, without what scripts call. */
  async function asked(work: () => Promise<unknown>): Promise<string[]> {
    const heard = await heardDuring(redis, work)
    return heard
      .filter(({ source }) => source !== 'lua')
      .map(({ name, args }) => `${name.toUpperCase()} ${args[2] ?? ''}`)
  }

  test('asks INFO once, and gives each script once as text: then each command is one round trip', async () => {
    const store = openStore()
    const first = await asked(async () => {
      await store.begin('a', claimOf('t1'))
      await store.renew('a', { ...ownOf('t1'), leaseMs: 1_000 })
      await store.complete('a', { ...ownOf('t1'), answer: ANSWER })
      await store.begin('b', claimOf('t1'))
      await store.release('b', { ...ownOf('t1'), failedMs: 60_000 })
    })
    expect(first).toEqual([
      ...['EVALSHA p:a', 'EVAL p:a', 'INFO ', 'EVALSHA p:a', 'EVAL p:a', 'EVALSHA p:a', 'EVAL p:a'],
      ...['EVALSHA p:b', 'EVALSHA p:b', 'EVAL p:b'],
    ])
  })

  test.each([
    ['a claim', (store: RedisStore) => store.begin('c', claimOf('t1'))],
    ['a refusal', (store: RedisStore) => store.begin('c', claimOf('t2'))],
    ['a renewal', (store: RedisStore) => store.renew('c', { ...ownOf('t1'), leaseMs: 1_000 })],
    ['a completion', (store: RedisStore) => store.complete('c', { ...ownOf('t1'), answer: ANSWER })],
    ['a replay', (store: RedisStore) => store.begin('c', claimOf('t3'))],
    ['a stale release', (store: RedisStore) => store.release('c', { ...ownOf('t3'), failedMs: 60_000 })],
    ['a release', (store: RedisStore) => store.release('d', { ...ownOf('t1'), failedMs: 60_000 })],
  ])('%s is one command', async (_name, command) => {
    const store = openStore()
    await store.begin('warm', claimOf('t1')) // the INFO
    const commands = await asked(() => command(store))
    expect(commands).toHaveLength(1)
    expect(commands[0]).toMatch(/^EVALSHA p:[cd]$/)
  })

  test('a command writes its own key and no other, and its record expires', async () => {
    await redis.flushdb()
    const store = openStore()
    await store.begin('k', claimOf('t1'))
    expect(await redis.keys('*')).toEqual(['p:k'])
    const { retentionMs } = claimOf('t1')
    expect(await redis.pttl('p:k')).toBeGreaterThan(retentionMs - 60_000)
    await store.release('k', { ...ownOf('t1'), failedMs: 60_000 })
    expect(await redis.pttl('p:k')).toBeLessThanOrEqual(60_000)
    expect(await redis.keys('*')).toEqual(['p:k'])
  })

  test('a server that forgot the scripts in the middle is given them again', async () => {
    const store = openStore()
    await store.begin('f', claimOf('t1'))
    await redis.script('FLUSH')
    expect(await store.complete('f', { ...ownOf('t1'), answer: ANSWER })).toEqual({ ok: true })
    await redis.script('FLUSH')
    expect(await store.begin('f', claimOf('t2'))).toMatchObject({ acquired: false, record: { state: 'completed' } })
  })

  test('a server that was restarted is given them again, and still has the record', async () => {
    const store = openStore()
    await store.begin('r', claimOf('t1'))
    redis.on('error', () => {})
    await server.restart()
    expect(await store.complete('r', { ...ownOf('t1'), answer: ANSWER })).toEqual({ ok: true })
    expect(await store.begin('r', claimOf('t2'))).toMatchObject({ acquired: false, record: { state: 'completed' } })
  })

  test('a failure that is not a forgotten script is not asked for twice', async () => {
    const sent: string[] = []
    const sendCommand = async (_key: string, [name]: readonly (string | Buffer)[]) => {
      sent.push(String(name))
      throw new Error('READONLY You can not write against a read only replica.')
    }
    await expect(new RedisStore({ sendCommand }).begin('k', claimOf('t1'))).rejects.toThrow('READONLY')
    expect(sent).toEqual(['EVALSHA'])
  })
})
