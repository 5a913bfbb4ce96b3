import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'

// Real servers and many connections, on a machine that may be busy.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 })

const PAGE = readFileSync(new URL('../../../docs/stores/redis.md', import.meta.url), 'utf8')
const [, forRequests = '', forOperators = ''] = /`(\+evalsha [^`]*)`[^`]*`(\+pttl [^`]*)`/.exec(PAGE) ?? []
const BEGUN = { label: 'charge', order: 1, state: 'begun', result: null, leaseMs: 30_000 } as const

describe('a user with the commands that the page names', async () => {
  const server = await startRedis()
  const admin = new Redis(server.port)
  const users: Redis[] = []
  afterAll(async () => {
    for (const each of [admin, ...users]) each.disconnect()
    await server.close()
  })

  async function storeOf(user: string, allowed: string): Promise<RedisStore> {
    await admin.acl('SETUSER', user, 'reset', 'on', '>pin', '~once-per-key:*', ...allowed.split(' '))
    await admin.script('FLUSH')
    const client = new Redis(server.port, { username: user, password: 'pin', enableReadyCheck: false })
    users.push(client)
    return new RedisStore({ client })
  }

  test('has all that requests need', async () => {
    const store = await storeOf('service', forRequests)
    expect(await store.begin('acme:paid', claimOf('t'))).toMatchObject({ acquired: true })
    expect(await store.renew('acme:paid', { ...ownOf('t'), leaseMs: 30_000 })).toEqual({ ok: true })
    expect(await store.step('acme:paid', { ...ownOf('t'), ...BEGUN })).toEqual({ ok: true })
    expect(await store.complete('acme:paid', { ...ownOf('t'), answer: ANSWER })).toEqual({ ok: true })
    expect(await store.begin('acme:failed', claimOf('t'))).toMatchObject({ acquired: true })
    expect(await store.release('acme:failed', { ...ownOf('t'), failedMs: 30_000 })).toEqual({ ok: true })
    expect(await store.begin('acme:failed', claimOf('u', 'g'))).toMatchObject({ acquired: true, attempt: 2 })
  })

  test('has all that operators need', async () => {
    const store = await storeOf('operator', `${forRequests} ${forOperators}`)
    const lost = { ...ownOf('t'), uncertain: true, failedMs: 1 }
    await store.release('acme:lost', lost)
    const settled = { token: 'u', attempt: 1, answer: ANSWER, retentionMs: 3_600_000 }
    expect((await store.list(null)).records).toMatchObject([{ key: 'acme:lost' }])
    expect(await store.resolve('acme:lost', settled)).toEqual({ ok: true })
    expect(await store.inspect('acme:lost')).toMatchObject({ state: 'completed' })
    const forgetting = { state: 'completed', attempt: 1, fingerprint: 'f', removes: true } as const
    expect(await store.forget('acme:lost', forgetting)).toEqual({ ok: true })
    expect((await store.listScope('acme', null)).records).toEqual(expect.any(Array))
  })
})
