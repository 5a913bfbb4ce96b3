import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Cluster, Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { ownOf } from '../adapters/claims.js'
import { SENTINEL_NAME, startRedisSentinel } from '../adapters/redis/redis-sentinel.js'
import { ROOT } from '../support/packed-package.js'
import { startRedisCluster } from '../support/redis-cluster.js'
import { startRedis } from '../support/redis-server.js'
import { build, command } from './built-command.js'

// Real processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })

const LOST = { ...ownOf('owner'), uncertain: true, failedMs: 1 }
const KEYS = Array.from({ length: 30 }, (_, i) => `acme:lost-${i}`)

/** Within the package, so that a module finds it and the drivers by their names. */
mkdirSync(join(ROOT, 'build'), { recursive: true })
const folder = mkdtempSync(join(ROOT, 'build/command-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
beforeAll(build)

/** A module of an application's that exports its store on this client. */
function moduleWith(name: string, client: string): string {
  const file = join(folder, `${name}.mjs`)
  const imports = `import { Cluster, Redis } from 'ioredis'\nimport { RedisStore } from 'once-per-key/redis'\n`
  writeFileSync(file, `${imports}export const store = new RedisStore({ client: ${client} })\n`)
  return file
}

async function unknownAt(...at: string[]): Promise<string[]> {
  const { stdout, stderr } = await command(['unknown', '--json', ...at])
  expect(stderr).toBe('')
  const { records } = JSON.parse(stdout) as { records: { scope: string; key: string }[] }
  return records.map(({ scope, key }) => `${scope}:${key}`).toSorted()
}

describe('a cluster', async () => {
  const cluster = await startRedisCluster()
  const ports = cluster.nodes.map(({ port }) => port)
  const client = new Cluster([{ host: '127.0.0.1', port: ports[0] as number }])
  const store = new RedisStore({ client })
  await Promise.all(KEYS.map((key) => store.release(key, LOST)))
  afterAll(async () => {
    client.disconnect()
    await cluster.close()
  })

  test('is reached by any of its nodes', async () => {
    for (const port of ports) expect(await unknownAt('--redis', `redis://127.0.0.1:${port}`)).toEqual(KEYS.toSorted())
  })

  test('has no database but 0: another one of a URL is never taken for it', async () => {
    const { exitCode, stderr } = await command(['stats', '--redis', `redis://127.0.0.1:${ports[0]}/2`])
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining('Redis does not give its database 2')])
  })

  test('is reached by the application’s own client', async () => {
    const file = moduleWith('cluster', `new Cluster([{ host: '127.0.0.1', port: ${ports[2]} }])`)
    expect(await unknownAt('--store', file)).toEqual(KEYS.toSorted())
  })

  test('is counted and settled as a whole', async () => {
    const at = ['--redis', `redis://127.0.0.1:${ports[1]}`]
    expect(JSON.parse((await command(['stats', '--json', ...at])).stdout)).toMatchObject({ records: KEYS.length })
    const settled = await command(['resolve', 'acme', 'lost-7', '--attempt', '1', '--completed', '--yes', ...at])
    expect([settled.exitCode, settled.stdout]).toEqual([0, 'Attempt 1 is settled as completed: it never runs again.\n'])
    expect(await store.inspect('acme:lost-7')).toMatchObject({ state: 'completed', attempt: 1 })
    await store.release('acme:lost-7', LOST)
  })
})

test('a master behind a sentinel is reached by the application’s own client', async () => {
  const sentinel = await startRedisSentinel()
  const options = `{ sentinels: [{ host: '127.0.0.1', port: ${sentinel.port} }], name: '${SENTINEL_NAME}' }`
  const client = new Redis({ sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name: SENTINEL_NAME })
  try {
    await new RedisStore({ client }).release('acme:lost-0', LOST)
    const file = moduleWith('sentinel', `new Redis(${options})`)
    expect(await unknownAt('--store', file)).toEqual(['acme:lost-0'])
    const settled = await command(['resolve', 'acme', 'lost-0', '--attempt', '1', '--failed', '--yes', '--store', file])
    expect([settled.exitCode, settled.stdout]).toEqual([0, 'Attempt 1 is settled as failed: the key is free.\n'])
    expect(await unknownAt('--store', file)).toEqual([])
  } finally {
    client.disconnect()
    await sentinel.close()
  }
})

describe('a database of a Redis server', async () => {
  const server = await startRedis()
  const client = new Redis(server.port)
  await new RedisStore({ client }).release('acme:lost-0', LOST)
  client.disconnect()
  afterAll(() => server.close())

  test('is that of the URL', async () => {
    expect(await unknownAt('--redis', `${server.url}/0`)).toEqual(['acme:lost-0'])
    const { exitCode, stdout } = await command(['stats', '--json', '--redis', `${server.url}/2`])
    expect([exitCode, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ records: 0 })])
  })

  test.each([
    ['does not have', '/99', 3, /^once-per-key: Redis does not give its database 99: .*out of range$/m],
    ['cannot have', '/payments', 3, /^once-per-key: The URL of Redis names no database by its number/],
  ])('that it %s is never taken for database 0', async (_which, path, code, words) => {
    const args = ['resolve', 'acme', 'lost-0', '--attempt', '1', '--failed', '--yes']
    const { exitCode, stdout, stderr } = await command([...args, '--redis', server.url + path])
    expect([exitCode, stdout, stderr]).toEqual([code, '', expect.stringMatching(words)])
    expect(await unknownAt('--redis', server.url)).toEqual(['acme:lost-0'])
  })
})

describe('a password of the environment', async () => {
  const server = await startRedis()
  const { port } = server
  const client = new Redis(port)
  await client.config('SET', 'requirepass', 's3cret')
  client.disconnect()
  afterAll(() => server.close())

  test('opens the store, and is not printed', async () => {
    const { exitCode, stdout, stderr } = await command(['doctor'], {
      ONCE_PER_KEY_REDIS: `redis://:s3cret@127.0.0.1:${port}`,
    })
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('version: ')])
    expect(stdout + stderr).not.toContain('s3cret')
  })

  test.each([
    ['that is wrong', 'ONCE_PER_KEY_REDIS', `redis://:wr0ng@127.0.0.1:${port}`],
    ['with signs that are not encoded', 'ONCE_PER_KEY_REDIS', 'redis://user:wr0ng@p/a:wr0ng@127.0.0.1:1'],
    ['in a URL that is none', 'ONCE_PER_KEY_POSTGRES', 'postgres://user:wr0ng wr0ng@127.0.0.1:port/db'],
    ['for nobody', 'ONCE_PER_KEY_POSTGRES', 'postgres://user:wr0ng@127.0.0.1:1/db'],
    ['among the parameters', 'ONCE_PER_KEY_POSTGRES', 'postgres://127.0.0.1:1/db?user=u&password=wr0ng'],
    ['where a file is expected', 'ONCE_PER_KEY_SQLITE', 'postgres://user:wr0ng@p@127.0.0.1/db'],
    ['with an @ that is taken for the end', 'ONCE_PER_KEY_SQLITE', 'postgres://user:p@wr0ng@127.0.0.1/db'],
    ['that is taken for a host', 'ONCE_PER_KEY_POSTGRES', 'postgres://user:p@wr0ng/x@127.0.0.1:1/db'],
  ])('%s is not printed', async (_what, name, url) => {
    const { exitCode, stdout, stderr } = await command(['unknown'], { [name]: url })
    expect([exitCode, stdout, stderr]).toEqual([3, '', expect.stringMatching(/^once-per-key: ./)])
    expect(stderr).not.toMatch(/wr0ng/)
  })
})

describe('a URL where something else is expected', () => {
  const URLS = ['postgres://user:wr0ng@127.0.0.1/db', 'rediss://:p#s/wr0ng@h', 'postgres://user:p@wr0ng@127.0.0.1/db']
  const PLACES: readonly (readonly [string, (url: string) => readonly string[], string])[] = [
    ['--store', (url) => ['inspect', 'a', 'k', '--store', url], '--store takes the path of a file'],
    ['--sqlite', (url) => ['stats', '--sqlite', url], '--sqlite takes the path of a file'],
    ['the command', (url) => [url], 'The first word is no command'],
    ['the name of an option', (url) => ['stats', `--${url}`], 'Unknown option'],
    ['the value of another option', (url) => ['schema', '--schema', url], 'schema: expected a name'],
  ]
  test.each(PLACES)('is refused without its password: %s', async (_what, args, words) => {
    for (const url of URLS) {
      const { exitCode, stdout, stderr } = await command(args(url))
      expect([exitCode, stdout, stderr]).toEqual([expect.toBeOneOf([2, 3]), '', expect.stringContaining(words)])
      expect(stderr).not.toMatch(/wr0ng|user:/)
    }
  })
})

describe('no store is opened', () => {
  test.each(['REDIS', 'POSTGRES', 'SQLITE'])('where ONCE_PER_KEY_%s is empty', async (name) => {
    const { exitCode, stderr } = await command(['stats'], { [`ONCE_PER_KEY_${name}`]: '' })
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`ONCE_PER_KEY_${name} is empty`)])
  })

  test.each([
    [['--schema', 'staging', '--sqlite', '/nowhere.db'], '--schema is not for --sqlite'],
    [['--schema', 'staging', '--redis', 'redis://127.0.0.1:1'], '--schema is not for --redis'],
    [['--prefix', 'staging', '--postgres', 'postgres://127.0.0.1:1'], '--prefix is not for --postgres'],
    [['--prefix', 'staging', '--store', '/nowhere.mjs'], '--prefix is not for --store'],
  ])('by %j, an option of another store’s', async (args, words) => {
    const { exitCode, stderr } = await command(['forget', '--scope', 'acme', '--yes', ...args])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(words)])
  })

  test.each([
    [['stats', '--schema', 'bad-name', '--postgres', 'postgres://127.0.0.1:1'], 'schema: expected a name'],
    [['schema', '--schema', 'bad-name'], 'schema: expected a name'],
    [['migrate', '--prefix', 'bad-name', '--sqlite', join(folder, 'none.db')], 'prefix: expected letters'],
  ])('by %j, a name that cannot be one', async (args, words) => {
    const { exitCode, stdout, stderr } = await command(args)
    expect([exitCode, stdout, stderr]).toEqual([2, '', expect.stringContaining(words)])
  })

  test('where the environment says another one', async () => {
    const { exitCode, stderr } = await command(['stats', '--schema', 'staging'], { ONCE_PER_KEY_SQLITE: '/nowhere.db' })
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('--schema is not for --sqlite')])
  })
})
