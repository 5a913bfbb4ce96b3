import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import net from 'node:net'
import { Redis, type RedisOptions } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startRedis } from '../../../support/redis-server.js'
import { SENTINEL_NAME, startSentinel } from '../redis-sentinel.js'

const CLAIM = { scope: '', fingerprint: 'f', leaseMs: 10_000, retentionMs: 60_000, unknownOutcome: 'rerun' } as const

/** An address that leads to the master, as a hosted service moves it. What is connected stays where it is. */
async function addressOf(port: number) {
  const target = { port }
  const server = net.createServer((socket) => {
    const onward = net.connect(target.port, '127.0.0.1')
    for (const end of [socket, onward]) end.on('error', () => {})
    socket.pipe(onward).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, target }
}

async function behindAFailover(options: Pick<RedisOptions, 'reconnectOnError'>) {
  const [first, second] = [await startRedis(), await startRedis()]
  const address = await addressOf(first.port)
  const client = new Redis(address.port, '127.0.0.1', options)
  onTestFinished(async () => {
    client.disconnect()
    await Promise.all([first.close(), second.close()])
  })
  const store = new RedisStore({ client })
  expect(await store.begin('before', { ...CLAIM, token: 'a' })).toMatchObject({ acquired: true })

  address.target.port = second.port
  const operator = new Redis(first.port)
  await operator.replicaof('127.0.0.1', second.port)
  operator.disconnect()
  return (token: string) => store.begin('behind', { ...CLAIM, token })
}

test('a client that stays with a demoted master gets READONLY, again and again', async () => {
  const begin = await behindAFailover({})
  await expect(begin('a')).rejects.toThrow(/READONLY/)
  await expect(begin('b')).rejects.toThrow(/READONLY/)
})

test('a client that reconnects on READONLY finds the new master, and loses no claim', async () => {
  const begin = await behindAFailover({
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
  })
  expect(await begin('a')).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
})

/** A master that was only paused goes on where it was. Sentinels demote it ten seconds later. */
async function behindAPause(options: Pick<RedisOptions, 'failoverDetector'>) {
  const first = await startRedis()
  const second = await startRedis('--replicaof', '127.0.0.1', `${first.port}`)
  const sentinel = await startSentinel(first.port)
  const [client, asking, next] = [
    new Redis({ sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name: SENTINEL_NAME, ...options }),
    new Redis(sentinel.port),
    new Redis(second.port),
  ]
  onTestFinished(async () => {
    for (const each of [client, asking, next]) each.disconnect()
    await Promise.all([first.close(), second.close(), sentinel.close()])
  })
  const comes = (look: () => Promise<void>) => vi.waitFor(look, { timeout: 20_000, interval: 50 })
  await comes(async () => expect(await asking.call('SENTINEL', 'replicas', SENTINEL_NAME)).toHaveLength(1))
  await comes(async () => expect(await next.info('replication')).toContain('master_link_status:up'))
  const store = new RedisStore({ client })
  expect(await store.begin('before', { ...CLAIM, token: 'a' })).toMatchObject({ acquired: true })

  const detects = options.failoverDetector === true
  if (detects) await comes(async () => expect(await asking.client('LIST')).toMatch(/ sub=1 /))
  const left = detects ? once(client, 'ready') : undefined
  first.signal('SIGSTOP')
  // Told to, instead of finding it out: sentinels that soon find a master down find a slow one down, too.
  await comes(async () => expect(await asking.call('SENTINEL', 'failover', SENTINEL_NAME)).toBe('OK'))
  await comes(async () =>
    expect(await asking.call('SENTINEL', 'get-master-addr-by-name', SENTINEL_NAME)).toContain(`${second.port}`),
  )
  await left
  first.signal('SIGCONT')
  expect(await store.begin('behind', { ...CLAIM, token: 'b' })).toMatchObject({ acquired: true })
  return { isKept: (await next.exists('once-per-key:behind')) === 1 }
}

test('ioredis stays with a master that was only paused, which confirms what is lost', async () => {
  expect(await behindAPause({})).toEqual({ isKept: false })
}, 60_000)

test('with `failoverDetector` it has left it', async () => {
  expect(await behindAPause({ failoverDetector: true })).toEqual({ isKept: true })
}, 60_000)
