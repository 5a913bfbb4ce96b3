import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { printTable } from '../../bin/printed.js'
import { redactPasswords } from '../../bin/without-passwords.js'
import { ROOT } from '../support/packed-package.js'
import { startRedis } from '../support/redis-server.js'
import { build, command } from './built-command.js'

// Real processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 240_000 })
beforeAll(build)

/** Within the package, so that a module finds the drivers by their names. */
mkdirSync(join(ROOT, 'build'), { recursive: true })
const folder = mkdtempSync(join(ROOT, 'build/command-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a command that fails ends, and says why', async () => {
  const server = await startRedis()
  afterAll(() => server.close())

  test('where its Redis user may not ask for INFO', async () => {
    const admin = new Redis(server.port)
    await admin.acl('SETUSER', 'teller', 'on', '>pin', '~*', '+@all', '-info')
    admin.disconnect()
    const { exitCode, stdout, stderr } = await command([
      'unknown',
      '--redis',
      `redis://teller:pin@127.0.0.1:${server.port}`,
    ])
    expect([exitCode, stdout]).toEqual([3, ''])
    expect(stderr).toContain('Redis does not say whether it is a cluster: NOPERM')
    expect(stderr).toContain('Allow INFO to this user')
  })

  const CLIENT = `import { Redis } from 'ioredis'\nconst client = new Redis('${server.url}')\n`
  const FAILS_MEANWHILE = `
    setTimeout(() => Promise.reject(new Error('cannot reach redis://teller:pin@host')))
    export const store = { begin() {}, renew() {}, complete() {}, release() {}, inspect: () => new Promise(() => {}) }
  `
  test.each([
    ['exports no store, and has opened a client', `${CLIENT}await client.ping()\n`, 2, /exports no `store`/],
    [
      'throws, and has opened a client',
      `${CLIENT}await client.ping()\nthrow new Error('no settings')\n`,
      3,
      /no settings/,
    ],
    ['throws nothing that has words', 'throw undefined\n', 3, /^once-per-key: undefined$/m],
    ['has a client that fails meanwhile', FAILS_MEANWHILE, 3, /^once-per-key: cannot reach redis:\/\/…@host\n$/],
    ['awaits what never comes', 'await new Promise(() => {})\n', 3, /what it waited for never comes.*--store/],
  ])('where the module of its store %s', async (name, text, code, words) => {
    const file = join(folder, `${name.replaceAll(/\W/g, '-')}.mjs`)
    writeFileSync(file, text)
    const { exitCode, stdout, stderr } = await command(['inspect', 'acme', 'order-1', '--store', file])
    expect([exitCode, stdout, stderr]).toEqual([code, '', expect.stringMatching(words)])
  })
})

test('a table may have more rows than a call may have arguments', () => {
  const log = vi.spyOn(console, 'log').mockImplementation(() => {})
  try {
    printTable(['scope', 'key'], Array(200_000).fill(['acme', 'order-1001']))
    expect(log).toHaveBeenCalledTimes(200_001)
    expect(log).toHaveBeenLastCalledWith('acme   order-1001')
  } finally {
    log.mockRestore()
  }
})

describe('what is told of a failure', () => {
  test('is not delayed by a long argument', () => {
    const long = 'a'.repeat(100_000)
    const from = performance.now()
    expect(redactPasswords(long, [long, '-'.repeat(100_000)])).toBe(long)
    expect(performance.now() - from).toBeLessThan(2_000) // It was some twenty seconds.
  })

  const MANY = 100_000
  const password = Array.from({ length: MANY }, (_, i) => `w${i}`).join('-')
  test.each([
    ['schemes without a host', 'a:/'.repeat(MANY), []],
    ['slashes', `a:${'/'.repeat(MANY)}`, []],
    ['words, and a password of many', 'store '.repeat(MANY), [`redis://u:${password}@host`]],
    ['words, and a URL of slashes', 'store '.repeat(MANY), [`ab:${'/'.repeat(MANY)}`]],
  ])('is not delayed by many %s', (_what, message, given) => {
    const from = performance.now()
    expect(redactPasswords(message, given)).toBe(message)
    expect(performance.now() - from).toBeLessThan(2_000)
  })

  test('has no user before a host, in whatever case a driver writes it', () => {
    const given = ['postgres://me:Päss@S3cret/x@host:1/db']
    const message = 'no päss at S3CRET, secret: tried a://b@c and postgres:///me:x@y@host:1/db, mail me@host'
    expect(redactPasswords(message, given)).toBe(
      'no … at …, secret: tried a://…@c and postgres:///…@host:1/db, mail me@host',
    )
  })

  test('keeps its words where an answer has a URL and the same words', () => {
    const body = '{"receipt":"https://receipts.example/7","status":"store failed"}'
    const given = [`--body=${body}`, body, '--redis=redis://teller:pin@host', 'redis://teller:p1n@host']
    expect(redactPasswords('The store failed: pin and p1n', given)).toBe('The store failed: … and …')
  })
})
