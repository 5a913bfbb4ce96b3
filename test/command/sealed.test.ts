import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { newSealingKey, sealed } from 'once-per-key/sealed'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { ownOf } from '../adapters/claims.js'
import { A_DRIVER } from '../adapters/sqlite/drivers.js'
import { openStore } from '../adapters/sqlite/open-store.js'
import { startRedis } from '../support/redis-server.js'
import { build, command } from './built-command.js'

// Real processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })
beforeAll(build)

const LOST = { ...ownOf('owner'), uncertain: true, failedMs: 1 }
const RESOLVE = ['resolve', 'acme', 'lost', '--attempt', '1', '--completed', '--yes']
const ANSWER = { status: 201, statusMessage: '', headers: [], body: Buffer.from('paid') }

async function sealedFile(key: string, failures = 0) {
  const opened = openStore(A_DRIVER)
  const store = sealed(opened.store, { keys: [key] })
  for (let i = 0; i < failures; i++) await store.release(`acme:failed ${i}`, { ...LOST, failedMs: 3_600_000 })
  await store.complete('acme:paid', { ...ownOf('owner'), answer: ANSWER })
  await store.release('acme:lost', LOST)
  return { ...opened, sealedStore: store, at: ['--sqlite', opened.file] }
}

test('an answer without keys is not written into a store whose answers are sealed', async () => {
  const { store, at } = await sealedFile(newSealingKey())
  const { exitCode, stdout } = await command([...RESOLVE, '--body', '{}', ...at])
  expect([exitCode, stdout]).toEqual([
    1,
    expect.stringMatching(/^Nothing was changed: .* sealed.*ONCE_PER_KEY_SEALING_KEYS/),
  ])
  expect(await store.inspect('acme:lost')).toMatchObject({ state: 'failed', uncertain: true })
})

test('nor where a bank’s outage has left hundreds of records without an answer in front of the sealed ones', async () => {
  const { store, at } = await sealedFile(newSealingKey(), 300)
  const { exitCode, stdout } = await command([...RESOLVE, '--body', '{}', ...at])
  expect([exitCode, stdout]).toEqual([1, expect.stringMatching(/^Nothing was changed: .* sealed/)])
  expect(await store.inspect('acme:lost')).toMatchObject({ state: 'failed', uncertain: true })
})

test('with the keys it is written, and sealed', async () => {
  const key = newSealingKey()
  const { store, sealedStore, at } = await sealedFile(key)
  const resolved = await command([...RESOLVE, '--body', '{}', ...at], { ONCE_PER_KEY_SEALING_KEYS: key })
  expect(resolved.exitCode).toBe(0)
  expect(await store.inspect('acme:lost')).toMatchObject({ answer: { status: 0, statusMessage: 'sealed' } })
  expect(await sealedStore.inspect?.('acme:lost')).toMatchObject({ answer: { status: 200 } })
})

test('behind the prefix of an ioredis client it is sealed as the service seals, and the service opens it', async () => {
  const key = newSealingKey()
  const server = await startRedis()
  const client = new Redis(server.port, { keyPrefix: 'shop:' })
  onTestFinished(async () => {
    client.disconnect()
    await server.close()
  })
  const store = sealed(new RedisStore({ client, prefix: 'pay:' }), { keys: [key] })
  await store.complete('acme:paid', { ...ownOf('owner'), answer: ANSWER })
  await store.release('acme:lost', LOST)
  const at = ['--redis', server.url, '--prefix', 'shop:pay:']
  const keys = { ONCE_PER_KEY_SEALING_KEYS: key }
  const shown = await command(['inspect', 'acme', 'paid', '--show-body', ...at], keys)
  expect([shown.exitCode, shown.stdout]).toEqual([0, expect.stringContaining('paid')])
  expect((await command([...RESOLVE, '--body', '{}', ...at], keys)).exitCode).toBe(0)
  expect(await store.inspect('acme:lost')).toMatchObject({ answer: { status: 200, body: Buffer.from('{}') } })
})

test('without an answer the outcome is settled as ever', async () => {
  const { at } = await sealedFile(newSealingKey())
  expect((await command([...RESOLVE, ...at])).exitCode).toBe(0)
})
