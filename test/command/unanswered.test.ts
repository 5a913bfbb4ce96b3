import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Redis } from 'ioredis'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ownOf } from '../adapters/claims.js'
import { A_DRIVER } from '../adapters/sqlite/drivers.js'
import { openStore } from '../adapters/sqlite/open-store.js'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js'
import { startPostgres } from '../support/postgres-server.js'
import { IN_STATEMENT } from '../support/postgres-statements.js'
import { startRedis } from '../support/redis-server.js'
import { build, command } from './built-command.js'

// Real processes on a machine that may be busy, and limits of seconds that a command waits for.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })
beforeAll(build)

const LOST = { ...ownOf('owner'), uncertain: true, failedMs: 1 }
const COMMANDS = {
  unknown: ['unknown'],
  inspect: ['inspect', 'acme', 'order-1'],
  resolve: ['resolve', 'acme', 'order-1', '--attempt', '1', '--failed', '--yes'],
  forget: ['forget', '--scope', 'acme', '--yes'],
  stats: ['stats'],
  doctor: ['doctor'],
}

describe.each(Object.entries(COMMANDS))('%s', (_name, args) => {
  test('of a server that accepts and says nothing ends with code 3, and says so', async () => {
    const server = createServer((socket) => socket.resume().on('error', () => {})).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const [redis, postgres] = await Promise.all([
      command([...args, '--redis', `redis://127.0.0.1:${port}`]),
      command([...args, '--postgres', `postgres://user:secret@127.0.0.1:${port}/db`]),
    ])
    expect([redis.exitCode, redis.stdout, redis.stderr]).toEqual([
      3,
      '',
      'once-per-key: Redis cannot be reached: It did not answer within 5 s.\n',
    ])
    expect([postgres.exitCode, postgres.stdout, postgres.stderr]).toEqual([
      3,
      '',
      expect.stringMatching(/^once-per-key: Postgres cannot be reached: .*timeout.*\n$/),
    ])
  })

  test('of a server that nobody runs names the cause', async () => {
    const [redis, postgres] = await Promise.all([
      command([...args, '--redis', 'redis://localhost:1']),
      command([...args, '--postgres', 'postgres://user:secret@localhost:1/db']),
    ])
    for (const { exitCode, stderr } of [redis, postgres]) {
      expect([exitCode, stderr]).toEqual([
        3,
        expect.stringMatching(/^once-per-key: \w+ cannot be reached: .*ECONNREFUSED/),
      ])
    }
  })
})

describe('a server that falls silent', async () => {
  const redis = await startRedis()
  const postgres = await startPostgres()
  afterAll(async () => {
    await redis.close()
    await postgres.close()
  })

  async function silentRedis(at: string): Promise<readonly string[]> {
    const client = new Redis(redis.url)
    await new RedisStore({ client }).release('acme:order-1', LOST)
    client.disconnect()
    return ['--redis', `redis://127.0.0.1:${await silentBehind(Number(new URL(redis.url).port), at)}`]
  }

  async function silentPostgres(at: string): Promise<readonly string[]> {
    await postgres.run(PostgresStore.schemaSql())
    const url = postgres.url().replace(`:${postgres.port}`, `:${await silentBehind(postgres.port, at)}`)
    return ['--postgres', url]
  }

  test.each([
    ['at the command of the store', ['inspect', 'acme', 'order-1'], 'evalsha'],
    ['at a command of the doctor', ['doctor'], 'time'],
    ['at a walk', ['stats'], 'scan'],
  ])('Redis, %s, is waited for no longer than its limit', async (_where, args, at) => {
    const { exitCode, stderr } = await command([...args, ...(await silentRedis(at))])
    expect([exitCode, stderr]).toEqual([3, expect.stringMatching(/^once-per-key: .*(did not reply within|timed out)/)])
  })

  test.each([
    ['at the command of the store', ['inspect', 'acme', 'order-1'], IN_STATEMENT.read],
    ['at a command of the doctor', ['doctor'], 'clock_timestamp'],
    ['at a migration', ['migrate'], 'once_per_key'],
  ])('Postgres, %s, is waited for no longer than its limit', async (_where, args, at) => {
    const { exitCode, stderr } = await command([...args, ...(await silentPostgres(at))])
    expect([exitCode, stderr]).toEqual([3, expect.stringMatching(/^once-per-key: .*(did not reply within|timeout)/)])
  })
})

describe('a SQLite file that is locked all the time', () => {
  const CHANGES = {
    resolve: COMMANDS.resolve,
    'forget of a scope': COMMANDS.forget,
    'forget of a key': ['forget', '--scope', 'acme', '--key', 'order-2', '--yes'],
  }

  test.each(Object.entries(CHANGES))('makes %s end with code 3, and say why', async (_name, args) => {
    const { file, store, connect } = openStore(A_DRIVER)
    await store.release('acme:order-1', LOST)
    const answer = { status: 201, statusMessage: '', headers: [], body: Buffer.from('paid') }
    await store.complete('acme:order-2', { ...ownOf('owner'), answer })
    const other = connect()
    other.exec('BEGIN IMMEDIATE')
    const { exitCode, stdout, stderr } = await command([...args, '--sqlite', file])
    expect([exitCode, stdout, stderr]).toEqual([3, '', expect.stringMatching(/^once-per-key: .*locked/)])
    other.exec('ROLLBACK')
    expect(await store.inspect('acme:order-1')).toMatchObject({ state: 'failed', uncertain: true })
    expect(await store.inspect('acme:order-2')).toMatchObject({ answer: { status: 201 } })
  })
})

/** A way to a server that passes everything on, up to the first request that contains the text. */
async function silentBehind(port: number, text: string): Promise<number> {
  const proxy: FaultProxy = await startFaultProxy(port)
  onTestFinished(() => proxy.close())
  void proxy.hold(text)
  return proxy.port
}
