import { describe, expect, onTestFinished, test } from 'vitest'
import { LIBRARIES } from '../support/default-clients.js'
import { startFaultProxy } from '../support/fault-proxy.js'
import type { BuiltServer } from '../support/server-process.js'
import { startServersOnRedis } from './servers-on-redis.js'

const { redis, server } = await startServersOnRedis()

describe.each(LIBRARIES)('a process that shuts down, with $name', ({ name: library }) => {
  test('writes a pending completion before it closes its client', async () => {
    const link = await startFaultProxy(redis.port)
    onTestFinished(() => link.close())
    const options = { storeTimeoutMs: 300 }
    const leaving = await server.start({ name: 'leaving', library, redisPort: link.port, options, waits: true })
    const asked = leaving.pay(library)
    await leaving.told({ type: 'run' })
    link.cut()
    leaving.wake()
    const answer = await asked
    expect([answer.status, answer.header('Idempotent-Replayed')]).toEqual([201, undefined])
    expect(leaving.messages).toContainEqual({ type: 'event', event: 'completion_pending' })

    leaving.signal('SIGTERM')
    await leaving.told({ type: 'closing' })
    link.heal()
    expect(await leaving.exited).toBe(0)
    expect(tail(leaving.messages)).toEqual(['closing', 'completed', 'idle'])

    const staying = await server.start({ name: 'staying', library, redisPort: redis.port })
    const retry = await staying.pay(library)
    expect([retry.status, retry.header('Idempotent-Replayed')]).toEqual([201, 'true'])
    expect(retry.body).toEqual(answer.body)
  }, 30_000)
})

/** What it told from its closing on, without its failures. */
function tail(messages: Awaited<ReturnType<BuiltServer['start']>>['messages']): string[] {
  return messages
    .slice(messages.findIndex(({ type }) => type === 'closing'))
    .map((message) => (message.type === 'event' ? message.event : message.type))
    .filter((name) => name !== 'store_failed')
}
