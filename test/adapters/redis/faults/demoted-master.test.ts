import type { AddressInfo } from 'node:net'
import net from 'node:net'
import { Redis, type RedisOptions } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../../support/redis-server.js'

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
