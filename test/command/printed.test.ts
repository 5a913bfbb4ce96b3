import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Redis } from 'ioredis'
import { buildStorageKey } from 'once-per-key/core'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ownOf } from '../adapters/claims.js'
import { startRedis } from '../support/redis-server.js'
import { build, command } from './built-command.js'

// Real processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })
beforeAll(build)

const LOST = { ...ownOf('owner'), uncertain: true, failedMs: 60_000 }

describe('a key that would steer a terminal', async () => {
  const server = await startRedis()
  const client = new Redis(server.port)
  const key = '\u202eabc\u0085\u061c\u2028\u{e0001}'
  await new RedisStore({ client }).release(buildStorageKey({ scope: 'acme', key }), LOST)
  client.disconnect()
  afterAll(() => server.close())

  test.each([['unknown'], ['inspect', 'acme', key]])('is escaped in what %s prints', async (...args) => {
    const at = ['--redis', server.url]
    const escaped = '\\u202eabc\\u0085\\u061c\\u2028\\udb40\\udc01'
    const json = await command([...args, '--json', ...at])
    expect(json.stdout).toContain(`"key": "${escaped}"`)
    expect(JSON.stringify(JSON.parse(json.stdout))).toContain(JSON.stringify(key))
    const table = await command([...args, ...at])
    expect(table.stdout).toContain('\\u{202e}abc\\u{85}\\u{61c}\\u{2028}\\u{e0001}')
    for (const { stdout } of [json, table]) expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/u)
  })
})

test('an error of a server that would steer a terminal is escaped', async () => {
  const replies = (sent: string) => (/evalsha/i.test(sent) ? '-ERR \u001b]0;title\u0007\u202eabc\r\n' : '+OK\r\n')
  const server = createServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        for (const sent of String(bytes).split(/(?=\*\d+\r\n)/)) socket.write(replies(sent))
      })
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { stderr } = await command(['inspect', 'acme', 'order-1', '--redis', `redis://127.0.0.1:${port}`])
  expect(stderr).toContain('ERR \\u{1b}]0;title\\u{7}\\u{202e}abc. Nothing changed.')
})
