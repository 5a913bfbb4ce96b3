import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PostgresStore } from 'once-per-key/postgres'
import { newSealingKey, sealingKeyId } from 'once-per-key/sealed'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { installBetterSqlite3 } from '../adapters/sqlite/better-sqlite3.js'
import { page, read } from '../docs/pages.js'
import { installInto, packPackage, ROOT } from '../support/packed-package.js'
import { startPgBouncer } from '../support/pgbouncer.js'
import { startPostgres } from '../support/postgres-server.js'
import { startRedis } from '../support/redis-server.js'
import { runNodeWith } from '../support/run-node.js'

// Packing, installing, and real processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })

const NOTHING_AWAITS = 'Nothing awaits an operator. The run of an owner that died is listed once its lease has ended.\n'

/** A service over any store: it dies in its handler, or answers. */
const SERVICE = `
import { createServer } from 'node:http'
import { idempotency } from 'once-per-key'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import { sealed } from 'once-per-key/sealed'
import { SqliteStore } from 'once-per-key/sqlite'

const [kind, where, how, key] = process.argv.slice(2)
const stores = {
  redis: async () => {
    const client = new (await import('ioredis')).Redis(where)
    await client.ping()
    return new RedisStore({ client })
  },
  postgres: async () => new PostgresStore({ pool: new (await import('pg')).default.Pool({ connectionString: where }) }),
  sqlite: async () => new SqliteStore({ database: new (await import('better-sqlite3')).default(where) }),
}
const inner = await stores[kind]()
await inner.migrate?.()
const store = key === undefined ? inner : sealed(inner, { keys: [key] })
const times = { leaseMs: 2_000, storeTimeoutMs: 500, inFlightWaitMs: 20_000 }
const once = idempotency({ store, scope: () => 'acme', unknownOutcome: 'refuse', ...times })
const server = createServer((req, res) =>
  once(req, res, (error) => {
    if (how === 'dies') process.kill(process.pid, 'SIGKILL')
    else res.writeHead(error ? 500 : 201, { 'Content-Type': 'application/json' }).end('{"id":"by the handler"}')
  }),
)
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
`

let packed: Awaited<ReturnType<typeof packPackage>>
let project: string

beforeAll(async () => {
  packed = await packPackage()
  project = join(packed.folder, 'project')
  await installInto(project, packed.tarball, 'module')
  // The drivers, where an application has installed them.
  for (const name of ['ioredis', 'pg']) {
    await symlink(join(ROOT, 'node_modules', name), join(project, 'node_modules', name), 'junction')
  }
  await installBetterSqlite3(join(project, 'node_modules'))
  await writeFile(join(project, 'service.mjs'), SERVICE)
})
afterAll(() => packed?.remove())

/** The command as npm links it. */
function command(args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  return runNodeWith(variables, join(project, 'node_modules/.bin/once-per-key'), ...args)
}

async function json(args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const { stdout, stderr } = await command([...args, '--json'], variables)
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}

async function serve(kind: string, where: string, how: 'dies' | 'lives', key?: string): Promise<number> {
  const args = [join(project, 'service.mjs'), kind, where, how, ...(key === undefined ? [] : [key])]
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [port] = await once(child.stdout as NodeJS.ReadableStream, 'data')
  return Number(port)
}

async function pay(port: number) {
  const headers = { 'Idempotency-Key': 'order-1' }
  const response = await fetch(`http://127.0.0.1:${port}/payouts`, { method: 'POST', headers })
  return { status: response.status, replayed: response.headers.get('idempotent-replayed'), body: await response.json() }
}

const redis = startRedis()
/** As a server is that keeps what it confirms. */
const DURABLE = { fsync: 'on' }
const postgres = startPostgres(DURABLE)
afterAll(async () => {
  await (await redis).close()
  await (await postgres).close()
})

const STORES = {
  redis: async () => (await redis).url,
  postgres: async () => (await postgres).url(),
  sqlite: async () => join(project, 'payments.db'),
}

describe.each(Object.entries(STORES))('on %s', (kind, place) => {
  test('what an owner left that was killed is found, looked at, settled, and replayed', async () => {
    const at = [`--${kind}`, await place()]
    await expect(pay(await serve(kind, await place(), 'dies'))).rejects.toThrow()
    const port = await serve(kind, await place(), 'lives')
    expect(await pay(port)).toMatchObject({ status: 409, body: { code: 'outcome_unknown' } })

    const { total, records } = await json(['unknown', ...at])
    const found = { scope: 'acme', key: 'order-1', state: 'in-flight', attempt: 1 }
    expect([total, records]).toEqual([1, [expect.objectContaining(found)]])
    const table = await command(['unknown', ...at])
    expect(table.stdout).toMatch(/acme {3}order-1 +1 +its owner has been silent for .* past its lease/)

    const looked = await command(['inspect', 'acme', 'order-1', ...at])
    expect([looked.exitCode, looked.stdout]).toEqual([0, expect.stringMatching(/^means +unknown: its owner/m)])

    const resolve = ['resolve', 'acme', 'order-1', ...at]
    const paid = ['--completed', '--status', '201', '--body', '{"id":"po_7"}', '--yes']
    const tooLate = await command([...resolve, '--attempt', '2', ...paid])
    expect([tooLate.exitCode, tooLate.stdout]).toEqual([1, 'Nothing was changed: it is at attempt 1 by now.\n'])
    const unasked = await command([...resolve, '--attempt', '1', '--failed'])
    expect([unasked.exitCode, unasked.stderr]).toEqual([2, expect.stringContaining('Nobody can be asked here')])
    const settled = await command([...resolve, '--attempt', '1', ...paid])
    expect([settled.exitCode, settled.stdout]).toEqual([0, 'Attempt 1 is settled as completed: it never runs again.\n'])

    expect(await pay(port)).toEqual({ status: 201, replayed: 'true', body: { id: 'po_7' } })
    expect((await command(['unknown', ...at])).stdout).toBe(NOTHING_AWAITS)
    const again = await command([...resolve, '--attempt', '1', '--failed', '--yes'])
    expect([again.exitCode, again.stdout]).toEqual([1, expect.stringContaining('it is completed')])
    expect(await json(['stats', ...at])).toMatchObject({ records: 1, unknownOutcomes: 0 })
  })

  test('the doctor finds nothing red where all is well', async () => {
    if (kind !== 'redis') await command(['migrate', `--${kind}`, await place()])
    const { exitCode, stdout } = await command(['doctor', `--${kind}`, await place()])
    expect(stdout.match(/^(green|yellow|red) .*$/gm)?.length).toBeGreaterThanOrEqual(8)
    expect([exitCode, stdout.match(/^red.*$/gm)]).toEqual([0, null])
    expect(stdout).toMatch(/^green {3}records: \d+ of \d+ that were looked at can be read$/m)
  })
})

test('the doctor says so where nothing in Redis begins with the prefix', async () => {
  const { stdout } = await command(['doctor', '--redis', (await redis).url, '--prefix', 'nobody:'])
  expect(stdout).toContain(
    'green   records: none that begin with nobody:; if the store has another prefix, give it as --prefix',
  )
})

describe('answers that are sealed', () => {
  test('are shown where the keys are given, and what an operator says is sealed', async () => {
    const key = newSealingKey()
    const at = ['--sqlite', join(project, 'sealed.db')]
    await expect(pay(await serve('sqlite', at[1] as string, 'dies', key))).rejects.toThrow()
    const port = await serve('sqlite', at[1] as string, 'lives', key)
    expect((await pay(port)).status).toBe(409)
    const keys = { ONCE_PER_KEY_SEALING_KEYS: key }
    const paid = ['--attempt', '1', '--completed', '--body', '{"id":"po_7"}', '--yes']
    expect((await command(['resolve', 'acme', 'order-1', ...at, ...paid], keys)).exitCode).toBe(0)
    expect(await pay(port)).toEqual({ status: 200, replayed: 'true', body: { id: 'po_7' } })
    const closed = await command(['inspect', 'acme', 'order-1', ...at, '--show-body'])
    expect(closed.stdout).toMatch(/^status +sealed$/m)
    expect(closed.stdout).toMatch(/^body +\d+ bytes, to be read with ONCE_PER_KEY_SEALING_KEYS$/m)
    expect(closed.stdout).not.toContain('\n\n')
    const shown = await command(['inspect', 'acme', 'order-1', ...at, '--show-body'], keys)
    expect(shown.stdout).toMatch(/^status +200$[\s\S]*\{"id":"po_7"\}/m)
    const other = await command(['inspect', 'acme', 'order-1', ...at], { ONCE_PER_KEY_SEALING_KEYS: newSealingKey() })
    expect([other.exitCode, other.stderr]).toEqual([3, expect.stringContaining('is sealed with the key')])
    for (const { stdout, stderr } of [shown, other]) expect(stdout + stderr).not.toContain(key)
  })

  test('have keys that the command makes, and calls by their ids', async () => {
    const { stdout, stderr } = await command(['seal'])
    const id = sealingKeyId(stdout.trim())
    expect(stderr).toContain(id)
    const ids = await command(['seal', '--ids'], { ONCE_PER_KEY_SEALING_KEYS: `${stdout.trim()},${newSealingKey()}` })
    expect(ids.stdout).toMatch(new RegExp(`^${id} {2}seals, and opens\\n[0-9a-f]{16} {2}opens\\n$`))
  })
})

describe('the doctor', () => {
  test('says what must be changed, and how, by its exit code too', async () => {
    const server = await startRedis('--maxmemory-policy', 'allkeys-lru', '--maxmemory', '100mb', '--appendonly', 'no')
    onTestFinished(() => server.close())
    const { exitCode, stdout } = await command(['doctor', '--redis', server.url])
    expect(exitCode).toBe(1)
    expect(stdout).toMatch(/^red {5}eviction: allkeys-lru\n .*noeviction/m)
    expect(stdout).toMatch(/^red {5}persistence: appendonly no\n .*CONFIG SET appendonly yes/m)
  })

  test('needs no more of Redis than what the page of the store allows to operators', async () => {
    const server = await startRedis('--appendonly', 'yes')
    onTestFinished(() => server.close())
    const allowed =
      /`(\+evalsha [^`]*)`[^`]*`(\+pttl [^`]*)`/.exec(page('docs/stores/redis.md'))?.slice(1).join(' ') ?? ''
    const { Redis } = await import('ioredis')
    const admin = new Redis(server.port)
    await admin.acl('SETUSER', 'operator', 'on', '>pin', '~once-per-key:*', ...allowed.split(' '))
    admin.disconnect()
    const at = `redis://operator:pin@127.0.0.1:${server.port}`
    expect(await command(['doctor', '--redis', at])).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('finds records of a later version', async () => {
    const server = await startRedis()
    onTestFinished(() => server.close())
    const { Redis } = await import('ioredis')
    const client = new Redis(server.port)
    await client.set('once-per-key:acme:order-1', '2 of a later version')
    const found = await json(['doctor', '--redis', server.url])
    client.disconnect()
    expect(found).toContainEqual(
      expect.objectContaining({ color: 'red', about: 'records', found: expect.stringMatching(/^0 of 1/) }),
    )
  })

  test('finds a Postgres that a crash would harm', async () => {
    const server = await startPostgres({ fsync: 'off' })
    onTestFinished(() => server.close())
    const found = await json(['doctor', '--postgres', server.url()])
    expect(found).toContainEqual(expect.objectContaining({ color: 'red', about: 'durability' }))
  })

  test('says whether a pooler is between, and what it knows', async () => {
    const server = await startPostgres(DURABLE)
    const bouncer = await startPgBouncer(server.port)
    onTestFinished(async () => {
      await bouncer.close()
      await server.close()
    })
    const ofPooler = async (at: string) =>
      (await json(['doctor', '--postgres', at])).find(({ about }: { about: string }) => about === 'pooler')?.found
    expect(await ofPooler(server.url())).toBe('none')
    expect(await ofPooler(bouncer.url('postgres'))).toMatch(/^one that (knows|does not know) prepared statements: /)
  })

  test('finds tables that are missing, and changes nothing; migrate makes them', async () => {
    const server = await startPostgres(DURABLE)
    onTestFinished(() => server.close())
    const at = ['--postgres', server.url()]
    for (const _ of ['first', 'again']) {
      const before = await command(['doctor', ...at])
      expect([before.exitCode, before.stdout]).toEqual([
        1,
        expect.stringMatching(/^red {5}schema: .*\n .*once-per-key migrate/m),
      ])
    }
    expect((await command(['migrate', ...at])).exitCode).toBe(0)
    expect((await command(['doctor', ...at])).exitCode).toBe(0)
  })

  test('finds a schema of an earlier revision', async () => {
    const server = await startPostgres(DURABLE)
    const pool = new Pool({ connectionString: server.url() })
    onTestFinished(async () => {
      await pool.end()
      await server.close()
    })
    const at = ['--postgres', server.url()]
    await command(['migrate', ...at])
    await pool.query("COMMENT ON TABLE once_per_key.sweeps IS 'once-per-key, revision 0'")
    const before = await command(['doctor', ...at])
    expect([before.exitCode, before.stdout]).toEqual([
      1,
      expect.stringMatching(/^red {5}schema: .* of revision 0, this version knows \d+\n .*once-per-key migrate.*503/m),
    ])
    await command(['migrate', ...at])
    expect((await command(['doctor', ...at])).exitCode).toBe(0)
  })

  test('makes no tables in a file that is another’s, nor does a look', async () => {
    const file = join(project, 'other.db')
    await writeFile(file, '')
    expect((await command(['doctor', '--sqlite', file])).stdout).toMatch(/^red {5}tables: missing$/m)
    const look = await command(['unknown', '--sqlite', file])
    expect([look.exitCode, look.stderr]).toEqual([3, expect.stringContaining('has no table once_per_key_records')])
    expect((await command(['migrate', '--sqlite', file])).exitCode).toBe(0)
    expect((await command(['unknown', '--sqlite', file])).exitCode).toBe(0)
  })
})

describe('where the records are', () => {
  test('can be said by a module of the application’s, with all its settings', async () => {
    await mkdir(join(project, 'app'), { recursive: true })
    const text = `import { RedisStore } from 'once-per-key/redis'
import { Redis } from 'ioredis'
export const store = new RedisStore({ client: new Redis('${(await redis).url}'), prefix: 'other:' })`
    await writeFile(join(project, 'app/store.mjs'), text)
    const { exitCode, stdout } = await command(['unknown', '--store', join(project, 'app/store.mjs')])
    expect([exitCode, stdout]).toEqual([0, NOTHING_AWAITS])
  })

  test.each([
    ['unknown'],
    ['inspect', 'acme', 'none'],
    ['resolve', 'acme', 'none', '--attempt', '1', '--failed', '--yes'],
  ])('has a number and a prefix, which are told where nothing is found: %s', async (...line) => {
    const url = `${(await redis).url}/3`
    const hint = (prefix: string) => `Only keys of database 3 that begin with "${prefix}" count.`
    expect((await command([...line, '--redis', url])).stderr).toContain(hint('once-per-key:'))
    const { stderr } = await command([...line, '--redis', url, '--prefix', 'pay'])
    if (line[0] === 'unknown') expect(stderr).toBe('')
    else expect(stderr).toContain(hint('pay'))
  })

  test('can be said by the environment', async () => {
    const { exitCode } = await command(['unknown'], { ONCE_PER_KEY_REDIS: (await redis).url })
    expect(exitCode).toBe(0)
  })

  test.each([
    ['redis', 'redis://user:s3cret@127.0.0.1:1'],
    ['postgres', 'postgres://user:s3cret@127.0.0.1:1/db'],
  ])('is told without its password where it cannot be reached: %s', async (kind, url) => {
    const { exitCode, stdout, stderr } = await command(['unknown', `--${kind}`, url])
    expect(exitCode).toBe(3)
    expect(stderr).toMatch(/^once-per-key: .*ECONNREFUSED|^once-per-key: .*cannot be reached/)
    expect(stdout + stderr).not.toContain('s3cret')
  })
})

const { version: VERSION } = JSON.parse(read('package.json'))

describe('the command line', () => {
  const shown = [...page('docs/operating.md').matchAll(/^npx once-per-key (.+)$/gm)].map(([, line = '']) => line)

  test('is as the page shows it', async () => {
    expect(shown.length).toBeGreaterThanOrEqual(5)
    for (const line of shown) {
      const args = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '')
      const { exitCode, stdout } = await command([...args, '--help'])
      expect([exitCode, stdout], line).toEqual([0, expect.stringContaining(`once-per-key ${args[0]}`)])
    }
  })

  test.each([
    [[], 0, 'once-per-key COMMAND'],
    [['--help'], 0, 'lists the records whose outcome is unknown'],
    [['--version'], 0, `${VERSION}\n`],
    [['-v'], 0, `${VERSION}\n`],
    [['resolve', '--help'], 0, 'once-per-key resolve acme order-1001 --attempt 1'],
    [['erase'], 2, 'There is no command "erase". There are unknown, list, inspect, resolve, forget,'],
    [['unknown', '--nonsense'], 2, '--nonsense'],
    [['unknown'], 2, 'Say where the records are'],
    [['unknown', '--redis', 'a', '--sqlite', 'b'], 2, '2 given'],
    [['unknown', '--postgres', 'localhost/payments'], 2, '--postgres takes a URL, such as postgres://host/database'],
    [['unknown', '--mysql', 'localhost'], 2, '--mysql takes a URL, such as mysql://host/database'],
    [['migrate', '--redis', 'redis://127.0.0.1:1'], 2, 'Redis has no tables'],
    [['unknown', '--sqlite', '/nowhere/at/all.db'], 3, 'There is no file'],
  ] as const)('%j ends with %i, and says why', async (args, code, words) => {
    const { exitCode, stdout, stderr } = await command(args)
    expect([exitCode, stdout + stderr]).toEqual([code, expect.stringContaining(words)])
  })

  test.each([
    [['resolve', 'acme'], 'named by its scope and its key'],
    [['inspect', 'order-1'], 'With singleTenant the scope is single-tenant.'],
    [['resolve', 'acme', 'k', '--failed', '--yes'], '--attempt'],
    [['resolve', 'acme', 'k', '--attempt', '1', '--yes'], 'either --failed or --completed'],
    [['resolve', 'acme', 'k', '--attempt', '1', '--failed', '--body', '{}', '--yes'], 'has no answer'],
    [['resolve', 'acme', 'k', '--attempt', '1', '--completed', '--body', 'no json', '--yes'], '--content-type'],
    [['resolve', 'acme', 'k', '--attempt', 'x', '--failed', '--yes'], 'an integer'],
    [
      ['resolve', 'acme', 'k', '--attempt', '1', '--completed', '--status', '404', '--yes'],
      'status: expected a success',
    ],
    [
      ['resolve', 'acme', 'k', '--attempt', '1', '--completed', '--status', '307', '--yes'],
      'status: expected a success',
    ],
  ] as const)('%j is refused before anything is changed', async (args, words) => {
    const { exitCode, stderr } = await command([...args, '--redis', (await redis).url])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(words)])
  })

  test('prints the schema of the Postgres store, for any name', async () => {
    expect((await command(['schema', '--schema', 'payments'])).stdout).toBe(
      PostgresStore.schemaSql({ schema: 'payments' }),
    )
  })

  test('a record that is not there is said to be none', async () => {
    const { exitCode, stdout } = await command(['inspect', 'acme', 'none', '--redis', (await redis).url])
    expect([exitCode, stdout]).toEqual([1, expect.stringContaining('There is no record of a request')])
    expect(stdout).toContain('--namespace run.NAME')
    const ofRunner = ['inspect', 'acme', 'none', '--namespace', 'run.settle', '--redis', (await redis).url]
    expect((await command(ofRunner)).stdout).toMatch(/^There is no record in run\.settle: /)
  })
})
