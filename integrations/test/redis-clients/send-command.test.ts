import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { Redis as Upstash } from '@upstash/redis'
import { Redis } from 'ioredis'
import { RedisStore, type SendCommand } from 'once-per-key/redis'
import { storeLaws } from 'once-per-key/testing'
import { commandOptions, createClient } from 'redis4'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { claimOf, ownOf } from '../../../test/adapters/claims.js'
import { startRedis } from '../../../test/support/redis-server.js'

// The laws wait for real leases to lapse, each on keys of its own.
vi.setConfig({ maxConcurrency: 40 })

const server = await startRedis('--appendonly', 'no')
const redis = new Redis(server.port)
afterAll(async () => {
  redis.disconnect()
  await server.close()
})

describe('a sendCommand of node-redis 4', async () => {
  const client = createClient({ url: server.url })
  await client.connect()
  afterAll(() => client.disconnect())
  const sendCommand: SendCommand = (_key, args) =>
    client.sendCommand([...args] as string[], commandOptions({ returnBuffers: true }))

  let stores = 0
  storeLaws(test.concurrent, async () => ({ store: new RedisStore({ sendCommand, prefix: `store-${++stores}:` }) }), {
    operable: true,
    listable: true,
    forgetful: true,
    stepped: true,
  })
})

describe('a sendCommand over HTTP, which carries text alone', async () => {
  const { url, close } = await serveOverHttp(redis)
  afterAll(close)
  const client = new Upstash({ url, token: 'any', automaticDeserialization: false, enableTelemetry: false })
  const sendCommand: SendCommand = async (_key, [name, ...args]) =>
    toBuffers(await client.exec([String(name), ...args.map(String)]))
  const store = new RedisStore({ sendCommand, prefix: 'http:' })

  test('gives a server without the scripts their texts', async () => {
    await redis.script('FLUSH')
    expect(await store.begin('k', claimOf('t1'))).toMatchObject({ acquired: true, attempt: 1 })
    await redis.script('FLUSH')
    expect(await store.begin('k', claimOf('t2'))).toMatchObject({ record: { state: 'in-flight' } })
  })

  test('replays a text', async () => {
    await store.begin('text', claimOf('t1'))
    const body = Buffer.from(JSON.stringify({ to: 'Zoë', note: '€'.repeat(2_000) }))
    const answer = {
      status: 201,
      statusMessage: 'Created',
      headers: [['Content-Type', 'application/json']],
      body,
    } as const
    expect(await store.complete('text', { ...ownOf('t1'), answer })).toEqual({ ok: true })
    expect(await store.begin('text', claimOf('t2'))).toMatchObject({ record: { state: 'completed', answer } })
  })

  test('shows neither key nor answer in the error of a server that refuses', async () => {
    await redis.config('SET', 'maxmemory', '1')
    try {
      const failed = store.begin('order-4711', claimOf('token-of-this-run'))
      const error = (await failed.catch((caught: unknown) => caught)) as Error
      expect(error.message).toMatch(/^OOM/)
      expect(`${error.message} ${error.stack}`).not.toMatch(/4711|token-of-this-run/)
    } finally {
      await redis.config('SET', 'maxmemory', '0')
    }
  })
})

/** A command in JSON, and its reply: strings in base64, as the client asks for them. */
async function serveOverHttp(to: Redis) {
  const http = createServer(async (req, res) => {
    const [name = '', ...args] = (await json(req)) as string[]
    try {
      res.end(JSON.stringify({ result: toBase64(await to.callBuffer(name, ...args)) }))
    } catch (error) {
      res.writeHead(400).end(JSON.stringify({ error: (error as Error).message }))
    }
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => void http.close() }
}

function toBase64(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(toBase64)
  return Buffer.isBuffer(reply) ? reply.toString('base64') : reply
}

function toBuffers(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(toBuffers)
  return typeof reply === 'string' ? Buffer.from(reply) : reply
}
