import { createPool } from 'mysql2/promise'
import { MySqlStore } from 'once-per-key/mysql'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ANSWER, ownOf } from '../adapters/claims.js'
import { startFaultProxy } from '../support/fault-proxy.js'
import { newMariaDbDatabase } from '../support/mariadb-server.js'
import { build, command } from './built-command.js'

// Real processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })
beforeAll(build)

const { server, url } = await newMariaDbDatabase()
const pool = createPool({ uri: url, connectionLimit: 2 })
afterAll(() => pool.end())
const store = new MySqlStore({ pool, sweeps: false })
const at = ['--mysql', url]

async function run(...args: string[]) {
  const { exitCode, stdout, stderr } = await command([...args, ...at])
  return { exitCode, stdout, stderr }
}

describe('the command on MySQL', () => {
  test('says that there are no tables, makes them, and then finds everything as it should be', async () => {
    expect(await run('doctor')).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(/red .*tables: There are no/),
    })
    expect(await run('migrate')).toMatchObject({ exitCode: 0, stdout: 'The store is up to date.\n' })
    expect(JSON.parse((await run('migrate', '--json')).stdout)).toEqual({ migrated: true })
    const { stdout } = await run('doctor', '--json')
    const findings = JSON.parse(stdout) as { color: string; about: string }[]
    expect(findings.filter(({ color }) => color === 'red').map(({ about }) => about)).toEqual(['durability'])
    expect(findings.map(({ about }) => about)).toEqual([
      ...['version', 'role', 'tables', 'sweeping', 'durability', 'replication', 'connections', 'inactive transactions'],
      ...['clock', 'latency', 'unknown outcomes', 'records'],
    ])
  })

  test('lists, shows, settles and erases records', async () => {
    await store.complete('acme:paid', { ...ownOf('owner'), answer: ANSWER })
    await store.release('acme:lost', { ...ownOf('owner'), uncertain: true, failedMs: 1 })
    expect((await run('unknown')).stdout).toContain('lost')
    expect(await run('inspect', 'acme', 'paid')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('completed'),
    })
    expect((await run('stats', '--json')).stdout).toContain('2')
    expect(await run('resolve', 'acme', 'lost', '--attempt', '1', '--failed', '--yes')).toMatchObject({ exitCode: 0 })
    expect((await store.inspect('acme:lost'))?.state).toBe('failed')
    expect(await run('forget', '--scope', 'acme', '--yes')).toMatchObject({ exitCode: 0 })
    expect(await store.inspect('acme:paid')).toMatchObject({ answer: { body: null } })
  })

  test('looks at the server in the same way, whatever the URL says of the application’s rows', async () => {
    const options = '?rowsAsArray=true&nestTables=true&bigNumberStrings=true&supportBigNumbers=true'
    await pool.query('UPDATE once_per_key_sweeps SET due_at = (UNIX_TIMESTAMP() + 60) * 1000')
    const { stdout } = await command(['doctor', '--mysql', `${url}${options}`])
    expect(stdout).toMatch(/^green {3}role: primary$/m)
    expect(stdout).toMatch(/^green {3}sweeping: swept$/m)
  })

  test.each([
    ['at a command of the doctor', 'doctor', 'SHOW GLOBAL VARIABLES'],
    ['at a walk', 'stats', 'CONVERT(name'],
  ])('waits no longer than its limit for a server that falls silent, %s', async (_where, name, at) => {
    const proxy = await startFaultProxy(server.port)
    onTestFinished(() => proxy.close())
    void proxy.hold(at)
    const { exitCode, stderr } = await command([name, '--mysql', url.replace(`:${server.port}`, `:${proxy.port}`)])
    expect([exitCode, stderr]).toEqual([3, expect.stringMatching(/^once-per-key: MySQL failed: .*timeout/)])
  })

  test('prints its SQL, and connects to nothing', async () => {
    const { stdout } = await command(['schema', '--for', 'mysql', '--prefix', 'pay_'])
    expect(stdout).toBe(MySqlStore.schemaSql({ prefix: 'pay_' }))
    const { stdout: json } = await command(['schema', '--for', 'mysql', '--json'])
    expect(JSON.parse(json)).toEqual({ sql: MySqlStore.schemaSql() })
    expect(await command(['schema', '--for', 'oracle'])).toMatchObject({ exitCode: 2 })
    expect(await command(['schema', '--for', 'mysql', '--schema', 'x'])).toMatchObject({ exitCode: 2 })
  })

  test('says where it cannot connect, without a password', async () => {
    const { exitCode, stderr } = await command(['stats', '--mysql', 'mysql://me:secret@127.0.0.1:1/x'])
    expect([exitCode, stderr]).toEqual([3, expect.stringMatching(/MySQL cannot be reached/)])
    expect(stderr).not.toContain('secret')
  })
})
