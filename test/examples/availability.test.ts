import { EventEmitter } from 'node:events'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { watchRedis } from '../../examples/payments/availability.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

test('a look ends after a second, whether there is an answer or not', async () => {
  const { watch, client, lines } = watched()
  client.ping = () => new Promise(() => {})
  const looking = watch.check()
  await vi.advanceTimersByTimeAsync(1_000)
  expect([await looking, watch.isAway()]).toEqual([false, true])
  expect(lines).toEqual(['redis is away: No answer within 1000 ms'])
})

test('it looks by itself, and tells of each change once', async () => {
  const { client, lines } = watched()
  await vi.advanceTimersByTimeAsync(4_000)
  expect(lines).toEqual([])
  client.status = 'reconnecting'
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lines).toEqual(['redis is away: Not connected'])
  client.status = 'ready'
  await vi.advanceTimersByTimeAsync(60_000)
  expect(lines).toEqual(['redis is away: Not connected', 'redis is back'])
})

test('a connection that closes, fails and opens again is told at once', async () => {
  const { client, lines } = watched()
  client.emit('error', new AggregateError([], ''))
  client.status = 'close'
  client.emit('close')
  // Behind it, before the look has ended.
  client.status = 'ready'
  client.emit('ready')
  await vi.advanceTimersByTimeAsync(0)
  expect(lines).toEqual(['redis is away: AggregateError', 'redis is back'])
})

test('once stopped, it looks and tells no more', async () => {
  const { watch, client, lines } = watched()
  watch.stop()
  expect(vi.getTimerCount()).toBe(0)
  client.status = 'end'
  client.emit('close')
  client.ping = () => Promise.reject(new Error('it still looks'))
  await vi.advanceTimersByTimeAsync(10_000)
  expect(lines).toEqual([])
})

function watched() {
  const lines: string[] = []
  const write = (line: string) => {
    const { msg, reason } = JSON.parse(line)
    lines.push(reason === undefined ? msg : `${msg}: ${reason}`)
  }
  const client = Object.assign(new EventEmitter(), { status: 'ready', ping: async () => 'PONG' })
  return { watch: watchRedis(client as unknown as Redis, pino({}, { write })), client, lines }
}
