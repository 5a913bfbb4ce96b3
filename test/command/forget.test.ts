import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Cluster, Redis } from 'ioredis'
import type { Store } from 'once-per-key/core'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../adapters/claims.js'
import { startRedisCluster } from '../support/redis-cluster.js'
import { startRedis } from '../support/redis-server.js'
import { build, command, commandInTerminal } from './built-command.js'

// Real processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })

/** Answers of two merchants, one that runs, one whose outcome is unknown, one that failed, and a webhook's event. */
async function fill(store: Store): Promise<void> {
  const own = ownOf('owner')
  for (const key of ['acme:paid-1', 'acme:paid-2', 'globex:paid-1', 'webhook:acme:event-1'])
    await store.complete(key, { ...own, answer: ANSWER })
  await store.begin('acme:runs', claimOf('runs'))
  await store.release('acme:unknown', { ...own, uncertain: true, failedMs: 1 })
  await store.release('acme:failed', { ...own, failedMs: 600_000 })
}

const isErased = async (store: RedisStore, key: string) => {
  const record = await store.inspect(key)
  return record?.state === 'completed' && record.answer?.body === null
}

beforeAll(build)

describe('forget', async () => {
  const server = await startRedis()
  const client = new Redis(server.port)
  const store = new RedisStore({ client })
  const at = ['--redis', server.url]
  afterAll(async () => {
    client.disconnect()
    await server.close()
  })
  beforeEach(async () => {
    await client.flushall()
    await fill(store)
  })

  const forget = (...args: string[]) => command(['forget', '--scope', 'acme', ...args, ...at])
  const json = async (...args: string[]) => JSON.parse((await forget(...args, '--yes', '--json')).stdout)

  test('erases the answers of a scope, and says what it left; the keys stay used', async () => {
    const expiresAt = await client.pexpiretime('once-per-key:acme:paid-1')
    const dry = await forget('--dry-run')
    expect(dry).toMatchObject({
      exitCode: 1,
      stderr: '',
      stdout: expect.stringMatching(/^Answers that would be erased: 2\.\nRecords left: 2\. /),
    })
    expect(await isErased(store, 'acme:paid-1')).toBe(false)

    const { exitCode, stdout } = await forget('--yes')
    expect([exitCode, stdout]).toEqual([
      1,
      expect.stringMatching(/^Answers erased: 2\.\nRecords left: 2\. They run, or/),
    ])
    expect(await json()).toEqual({ forgotten: 0, left: 2, unreadable: 0 })
    for (const key of ['acme:paid-1', 'acme:paid-2']) expect(await isErased(store, key)).toBe(true)
    for (const key of ['globex:paid-1', 'webhook:acme:event-1']) expect(await isErased(store, key)).toBe(false)
    expect(await store.begin('acme:paid-1', claimOf('later'))).toMatchObject({ acquired: false })
    expect(await client.pexpiretime('once-per-key:acme:paid-1')).toBe(expiresAt)
    expect(await json('--namespace', 'webhook')).toEqual({ forgotten: 1, left: 0, unreadable: 0 })
  })

  test('list shows what a scope has, and which answers would be erased', async () => {
    await forget('--key', 'paid-1', '--yes')
    const list = (...args: string[]) => command(['list', '--scope', 'acme', ...args, ...at])
    const { exitCode, stdout, stderr } = await list()
    const [title, ...lines] = stdout.trimEnd().split('\n')
    expect([exitCode, stderr, title?.split(/ {2,}/)]).toEqual([0, '', ['key', 'attempt', 'means', 'kept for']])
    expect(lines.map((line) => line.split(/ {2,}/).filter((_, i) => i === 0 || i === 2)).sort()).toEqual([
      ['5 in all.'],
      ['failed', 'it failed without effect; the key is free'],
      ['paid-1', 'it succeeded; retries get 409 answer_not_kept'],
      ['paid-2', 'it succeeded; forget would erase its answer'],
      ['runs', expect.stringMatching(/^it runs; /)],
      ['unknown', 'unknown: it failed, and may have had its effect'],
    ])

    const { total, records } = JSON.parse((await list('--json', '--limit', '4')).stdout)
    expect([total, records.length]).toEqual([5, 4])
    await client.del('once-per-key:globex:paid-1')
    const none = await command(['list', '--scope', 'globex', ...at])
    expect(none.stdout).toMatch(/^The scope has no records of requests\. For a runner say --namespace run\.NAME/)
    const event = JSON.parse((await list('--json', '--namespace', 'webhook')).stdout)
    const retentionRemainingMs = expect.any(Number)
    expect(event).toEqual({
      total: 1,
      records: [
        {
          namespace: 'webhook',
          scope: 'acme',
          key: 'event-1',
          state: 'completed',
          fingerprint: 'f',
          attempt: 1,
          hasAnswer: true,
          retentionRemainingMs,
        },
      ],
    })
  })

  test.each([
    ['forget of a scope', ['forget', '--scope', 'acme', '--yes']],
    ['forget of a key', ['forget', '--scope', 'acme', '--key', 'paid-1', '--yes']],
    ['stats', ['stats']],
  ])('%s says where it looked, where nothing is found: the store may have another prefix', async (_name, args) => {
    expect((await command([...args, ...at])).stderr).toBe('')
    await client.flushall()
    expect((await command([...args, ...at])).stderr).toContain(
      'Only keys of database 0 that begin with "once-per-key:" count.',
    )
  })

  test('list says which records could not be read', async () => {
    await client.set('once-per-key:acme:paid-1', '9')
    const { exitCode, stdout } = await command(['list', '--scope', 'acme', ...at])
    expect([exitCode, stdout]).toEqual([1, expect.stringMatching(/^paid-1 +it could not be read$/m)])
  })

  test('says how many records it could not read, and what to do', async () => {
    await fill(store)
    await client.del('once-per-key:acme:runs', 'once-per-key:acme:unknown')
    await client.set('once-per-key:acme:paid-1', '9')
    const { exitCode, stdout } = await forget('--yes')
    expect([exitCode, stdout]).toEqual([
      1,
      expect.stringMatching(
        /^Answers erased: 1\.\nRecords that could not be read: 1\. They are damaged, or a later version wrote them/,
      ),
    ])
    expect(await json()).toEqual({ forgotten: 0, left: 0, unreadable: 1 })
  })

  test('erases one answer, or removes one record, by its name', async () => {
    expect(await json('--key', 'paid-1')).toEqual({ forgotten: 1, left: 0, unreadable: 0 })
    expect([await isErased(store, 'acme:paid-1'), await isErased(store, 'acme:paid-2')]).toEqual([true, false])
    const dry = await forget('--key', 'paid-2', '--remove', '--dry-run', '--yes')
    expect([dry.exitCode, dry.stdout]).toEqual([0, 'It would be done: nothing was changed.\n'])
    expect(await json('--key', 'paid-2', '--remove')).toEqual({ forgotten: 1, left: 0, unreadable: 0 })
    expect(await store.begin('acme:paid-2', claimOf('later'))).toMatchObject({ acquired: true, attempt: 1 })
    const again = await forget('--key', 'paid-9', '--yes')
    expect([again.exitCode, again.stdout]).toEqual([1, 'Nothing was changed: there is no record.\n'])
  })

  test.each([
    ['runs', 'it runs'],
    ['unknown', 'its outcome is unknown: settle it first'],
  ])('never touches what is open: %s', async (key, why) => {
    for (const args of [[], ['--remove']]) {
      const before = await store.inspect(`acme:${key}`)
      const { exitCode, stdout } = await forget('--key', key, '--yes', ...args)
      expect([exitCode, stdout]).toEqual([1, expect.stringContaining(`Nothing was changed: ${why}`)])
      expect(await store.inspect(`acme:${key}`)).toMatchObject({ state: before?.state, attempt: 1 })
    }
  })

  test.each([
    [['list'], 'Say whose records'],
    [['list', 'acme'], 'list takes options alone'],
    [['forget'], 'Say whose answers'],
    [['forget', 'acme'], 'Say whose answers'],
    [['forget', '--scope', 'acme', '--remove', '--yes'], '--remove is for one key'],
    [['forget', '--scope', 'acme', '--key', '', '--yes'], 'The key is empty'],
    [['forget', '--scope', 'acme'], 'add --yes'],
  ])('%j is refused, and changes nothing', async (args, words) => {
    const { exitCode, stderr } = await command([...args, ...at])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(words)])
    expect(await isErased(store, 'acme:paid-1')).toBe(false)
  })

  test('a scope without records of requests: other operations may have some', async () => {
    const { exitCode, stdout } = await command(['forget', '--scope', 'nobody', '--yes', ...at])
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^Answers erased: 0\.\n.*--namespace run\.NAME/)])
  })

  // `script` of other systems has other arguments.
  describe.runIf(process.platform === 'linux')('in a terminal', () => {
    test.each([
      ['no', 1, 'Nothing was changed: you said no.'],
      ['yes', 1, 'Answers erased: 2.'],
    ])('it asks, and “%s” is heard', async (says, code, words) => {
      const { exitCode, shown, isAsked } = await commandInTerminal(['forget', '--scope', 'acme', ...at], says)
      expect([isAsked, exitCode, shown]).toEqual([true, code, expect.stringContaining(words)])
      expect(await isErased(store, 'acme:paid-1')).toBe(says === 'yes')
    })

    test.each([
      ['', 1, 'Nothing was changed: you said no.'],
      ['YES', 0, 'Attempt 1 is settled as failed: the key is free.'],
    ])('so does resolve, which shows the record first: “%s”', async (says, code, words) => {
      const args = ['resolve', 'acme', 'unknown', '--attempt', '1', '--failed', ...at]
      const { exitCode, shown, isAsked } = await commandInTerminal(args, says)
      expect([isAsked, exitCode, shown]).toEqual([true, code, expect.stringContaining(words)])
      expect(shown).toMatch(/state +failed[\s\S]*Settle it as failed: the next request runs\? Type yes:/)
      const claimed = await store.begin('acme:unknown', claimOf('next', 'other'))
      expect(claimed.acquired).toBe(says === 'YES')
    })

    test('resolve says so where a later attempt has begun before it was answered, and died', async () => {
      const args = ['resolve', 'acme', 'unknown', '--attempt', '1', '--failed', ...at]
      const claimed = () => store.begin('acme:unknown', { ...claimOf('next'), leaseMs: 1 })
      const { exitCode, shown } = await commandInTerminal(args, 'yes', undefined, claimed)
      expect([exitCode, shown]).toEqual([1, expect.stringContaining('Nothing was changed: it is at attempt 2 by now.')])
    })

    test.each([
      ['forget', ['forget', '--scope', 'acme', '--key', 'paid-1']],
      ['resolve', ['resolve', 'acme', 'unknown', '--attempt', '1', '--failed']],
    ])('%s --json asks beside its output, which is JSON alone', async (_name, args) => {
      const file = join(mkdtempSync(join(tmpdir(), 'once-per-key-json-')), 'output')
      onTestFinished(() => rmSync(dirname(file), { recursive: true }))
      const { exitCode, isAsked } = await commandInTerminal([...args, '--json', ...at], 'no', file)
      expect([isAsked, exitCode]).toEqual([true, 1])
      expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ why: 'you said no' })
    })

    test('so does the removal of a record', async () => {
      const args = ['forget', '--scope', 'acme', '--key', 'paid-1', '--remove', ...at]
      const { exitCode, shown } = await commandInTerminal(args, 'yes')
      expect([exitCode, shown]).toEqual([0, expect.stringContaining('Removed: the key is new.')])
      expect(await store.inspect('acme:paid-1')).toBeNull()
    })

    test('a reader of its output that leaves early, as `head` does, keeps nothing from being done', async () => {
      const pipe = join(mkdtempSync(join(tmpdir(), 'once-per-key-pipe-')), 'output')
      onTestFinished(() => rmSync(dirname(pipe), { recursive: true }))
      execFileSync('mkfifo', [pipe])
      const left = open(pipe).then((reader) => reader.close())
      const args = ['forget', '--scope', 'acme', '--key', 'paid-1', '--remove', ...at]
      const { exitCode, isAsked } = await commandInTerminal(args, 'yes', pipe)
      await left
      expect([isAsked, exitCode]).toEqual([true, 0])
      expect(await store.inspect('acme:paid-1')).toBeNull()
    })

    test.each([
      ['Ctrl-C', '\u0003'],
      ['Ctrl-D', '\u0004'],
    ])('%s is no, and says that nothing was changed', async (_key, says) => {
      const resolve = ['resolve', 'acme', 'unknown', '--attempt', '1', '--failed']
      for (const args of [['forget', '--scope', 'acme'], resolve]) {
        const { exitCode, shown, isAsked } = await commandInTerminal([...args, ...at], says)
        expect([isAsked, exitCode, shown]).toEqual([
          true,
          1,
          expect.stringMatching(/\nNothing was changed: you said no\./),
        ])
      }
      expect(await isErased(store, 'acme:paid-1')).toBe(false)
      expect(await store.inspect('acme:unknown')).toMatchObject({ state: 'failed', uncertain: true })
    })

    test('a status that is no success is refused before anything is asked', async () => {
      const args = ['resolve', 'acme', 'unknown', '--attempt', '1', '--completed', '--status', '404', ...at]
      const { exitCode, shown, isAsked } = await commandInTerminal(args, 'yes')
      expect([isAsked, exitCode, shown]).toEqual([false, 2, expect.stringContaining('status: expected a success')])
    })
  })
})

test('forget reaches every master of a cluster, by the URL of one', async () => {
  const cluster = await startRedisCluster()
  const port = cluster.nodes[1]?.port as number
  const client = new Cluster([{ host: '127.0.0.1', port }])
  try {
    const store = new RedisStore({ client })
    const keys = Array.from({ length: 60 }, (_, i) => `acme:paid-${i}`)
    for (const key of keys) await store.complete(key, { ...ownOf('owner'), answer: ANSWER })
    const url = `redis://127.0.0.1:${port}`
    const { stdout } = await command(['forget', '--scope', 'acme', '--yes', '--json', '--redis', url])
    expect(JSON.parse(stdout)).toEqual({ forgotten: keys.length, left: 0, unreadable: 0 })
    for (const key of keys) expect(await isErased(store, key)).toBe(true)
  } finally {
    client.disconnect()
    await cluster.close()
  }
})
