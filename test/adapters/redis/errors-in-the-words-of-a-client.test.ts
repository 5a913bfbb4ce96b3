import { Redis } from 'ioredis'
import type { StoreEvent } from 'once-per-key/core'
import { RedisStore, type SendCommand } from 'once-per-key/redis'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'

const server = await startRedis('--appendonly', 'no')
const redis = new Redis(server.port)
afterAll(async () => {
  redis.disconnect()
  await server.close()
})
beforeEach(async () => {
  await redis.flushall()
  await redis.script('FLUSH')
})

/** How clients word `NOSCRIPT No matching script …` and other errors: by its code, its text, and the command. */
const WORDS: Readonly<Record<string, (code: string, text: string, command: unknown) => unknown>> = {
  'as the server says it': (code, text) => new Error(`${code} ${text}`),
  'by GLIDE, a code of its own': (code, text) =>
    new Error(`An error was signalled by the server: - ${GLIDES_NAMES[code] ?? 'ResponseError'}: ${text}`),
  'by GLIDE, a code that it does not know': (code, text) => new Error(`${code}: ${text}`),
  'over HTTP, with the command': (code, text, command) =>
    new Error(`${code} ${text}, command was: ${JSON.stringify(command)}`),
  'behind a sentence': (code, text) => new Error(`Command failed: ${code} ${text}`),
  'as a cause': (code, text) => new Error('The command failed.', { cause: new Error(`${code} ${text}`) }),
  'as a text': (code, text) => `${code} ${text}`,
}
const GLIDES_NAMES: Readonly<Record<string, string>> = { NOSCRIPT: 'NoScriptError', NOPERM: 'PermissionDenied' }

describe.each(Object.entries(WORDS))('errors %s', (_name, word) => {
  const sendCommand: SendCommand = (_key, [name, ...args]) =>
    redis.callBuffer(String(name), ...args).catch((error: Error) => {
      const [, code = '', text = ''] = /^(\S+) (.*)$/s.exec(error.message) ?? []
      throw word(code, text, [name, ...args])
    })

  test('a script that the server does not have is sent to it', async () => {
    const store = new RedisStore({ sendCommand })
    const claimed = { acquired: true, attempt: 1, previousOutcome: 'none' }
    expect(await store.begin('k', claimOf('t1'))).toEqual(claimed)
    await redis.script('FLUSH') // as a restart does
    expect(await store.begin('l', claimOf('t1'))).toEqual(claimed)
  })

  test('a user who may not read the eviction policy is not asked for it again', async () => {
    await redis.acl('SETUSER', 'default', '-info')
    try {
      const store = new RedisStore({ sendCommand })
      const events: StoreEvent[] = []
      const seen = new Promise<void>((resolve) => {
        store.observe((event) => {
          events.push(event)
          resolve()
        })
      })
      await store.begin('k', claimOf('t1'))
      await seen
      expect(events).toEqual([expect.objectContaining({ type: 'eviction_policy', policy: null })])
    } finally {
      await redis.acl('SETUSER', 'default', '+info')
    }
  })
})

test('an error that quotes the command shows neither the key nor the answer', async () => {
  const sendCommand: SendCommand = async (_key, args) => {
    throw new Error(`OOM command not allowed, command was: ${JSON.stringify(args)}`)
  }
  const store = new RedisStore({ sendCommand })
  const body = Buffer.from('{"iban":"DE02120300000000202051"}')
  const failed = store.complete('acme:order-4711', { ...ownOf('token-of-the-run'), answer: { ...ANSWER, body } })
  const error = (await failed.catch((caught: unknown) => caught)) as Error
  expect(error.message).toMatch(/^OOM command not allowed/)
  for (const text of [error.message, error.stack]) expect(text).not.toMatch(/4711|DE02|token-of|rel=/)
})
