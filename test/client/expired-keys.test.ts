import { describe, expect, test, vi } from 'vitest'
import { done, hangUp, OPERATION, outcomeUnknown, problem, replayed, start } from './trial.js'

const LIMIT_MS = 86_100_000
const keyExpired = problem(409, 'key_expired', { 'X-Should-Retry': 'false' })
const firstSentIn = (init: RequestInit | undefined) => new Headers(init?.headers).get('Repeatability-First-Sent')

describe('each try says when the first one was sent', () => {
  test('as an HTTP date, also after the page was loaded anew', async () => {
    const { send, seen } = start([hangUp, replayed], { maxTries: 1 })
    const sentAt = new Date()
    await send()
    vi.setSystemTime(Date.now() + 3_600_000)
    await send()
    expect(seen.map(({ init }) => firstSentIn(init))).toEqual([sentAt.toUTCString(), sentAt.toUTCString()])
  })

  test('not where a function makes the keys: nobody knows', async () => {
    const { send, seen } = start([hangUp, replayed], { maxTries: 1, keys: (operation) => operation })
    await send()
    vi.setSystemTime(Date.now() + 10 * LIMIT_MS)
    expect(await send()).toMatchObject({ outcome: 'done' })
    expect(seen.map(({ init }) => firstSentIn(init))).toEqual([null, null])
  })

  test('not where the stored key is not one of this client’s', async () => {
    const { send, seen, keys } = start([replayed])
    keys.setItem(`once-per-key:${OPERATION}`, 'a key of another')
    expect(await send()).toMatchObject({ outcome: 'done' })
    expect([seen[0]?.key, firstSentIn(seen[0]?.init)]).toEqual(['a key of another', null])
  })
})

describe('an operation is tried again', () => {
  test('until `expiresAfterMs` after its first try, and not a millisecond longer', async () => {
    const { send, seen, keys } = start([hangUp, hangUp], { maxTries: 1 })
    await send()
    vi.setSystemTime(Date.now() + LIMIT_MS)
    await send()
    vi.setSystemTime(Date.now() + 1)
    expect(await send()).toMatchObject({ outcome: 'unknown', problem: { code: 'key_expired' }, response: undefined })
    expect(seen).toHaveLength(2)
    expect(keys.all.get(`once-per-key:${OPERATION}`)).toBe(seen[0]?.key)
  })

  test('for as long as the option says, within a call too', async () => {
    const { send, seen } = start([hangUp, hangUp, hangUp, done], { expiresAfterMs: 1 })
    vi.spyOn(Math, 'random').mockReturnValue(1)
    expect(await send()).toMatchObject({ outcome: 'unknown', problem: { code: 'key_expired' } })
    expect(seen).toHaveLength(1)
    vi.restoreAllMocks()
  })

  test('as a new one, once its outcome was found out and its key forgotten', async () => {
    const { send, client, seen } = start([hangUp, done], { maxTries: 1 })
    await send()
    vi.setSystemTime(Date.now() + LIMIT_MS + 1)
    await send()
    await client().forget(OPERATION)
    expect(await send()).toMatchObject({ outcome: 'done' })
    expect(seen[1]?.key).not.toBe(seen[0]?.key)
  })
})

describe('a service that says that the key has expired', () => {
  test('does not settle an operation that may have happened, whatever `settles` says', async () => {
    const { send, keys } = start([hangUp, keyExpired], { settles: () => true })
    expect(await send()).toMatchObject({ outcome: 'unknown', problem: { code: 'key_expired' } })
    expect(keys.all.size).toBe(1)
  })

  test('has refused the first try of a new key: its client’s clock is wrong', async () => {
    const { send, keys } = start([keyExpired])
    expect(await send()).toMatchObject({ outcome: 'refused', problem: { code: 'key_expired' } })
    expect(keys.all.size).toBe(0)
  })

  test('is believed before one that does not know', async () => {
    const { send } = start([outcomeUnknown])
    expect(await send()).toMatchObject({ outcome: 'unknown' })
  })
})
