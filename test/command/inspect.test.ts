import express, { type NextFunction, type Request, type Response } from 'express'
import { Redis } from 'ioredis'
import { idempotency } from 'once-per-key'
import { RedisStore } from 'once-per-key/redis'
import { runner } from 'once-per-key/run'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../adapters/claims.js'
import { listen } from '../support/bindings.js'
import { startRedis } from '../support/redis-server.js'
import { build, command, commandInTerminal } from './built-command.js'

// Real processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })
beforeAll(build)

const LABEL = 'bank transfer'
const INSPECT = ['inspect', 'acme', 'order-1']

async function onRedis() {
  const server = await startRedis()
  onTestFinished(() => server.close())
  const client = new Redis(server.port)
  onTestFinished(() => client.disconnect())
  return { store: new RedisStore({ client }), at: ['--redis', server.url] }
}

/** A service whose handler has derived a key when its outcome becomes unknown. */
async function lostPayment() {
  const { store, at } = await onRedis()
  const derived: (string | undefined)[] = []
  const app = express()
  const once = idempotency({ store, scope: () => 'acme', onEvent() {} })
  app.post('/payouts', express.json(), once, (req: Request) => {
    derived.push(req.idempotency?.deriveKey(LABEL))
    throw new Error('The bank did not answer.')
  })
  app.use((_error: Error, _req: Request, res: Response, _next: NextFunction) => void res.sendStatus(500))
  const { port, close } = await listen(app)
  onTestFinished(close)
  const headers = { 'Idempotency-Key': 'order-1', 'Content-Type': 'application/json' }
  const body = JSON.stringify({ amount: 100, to: 'DE02' })
  const { status } = await fetch(`http://127.0.0.1:${port}/payouts?by=api`, { method: 'POST', headers, body })
  expect([status, derived.length]).toEqual([500, 1])
  return { derivedKey: String(derived[0]), at }
}

test('--derive shows the key that the handler derived by that label', async () => {
  const { derivedKey, at } = await lostPayment()
  const shown = await command([...INSPECT, '--derive', LABEL, ...at])
  expect([shown.exitCode, shown.stdout]).toEqual([
    0,
    expect.stringMatching(new RegExp(`^derived key +${derivedKey}$`, 'm')),
  ])
  const { stdout } = await command([...INSPECT, '--derive', LABEL, '--json', ...at])
  expect(JSON.parse(stdout)).toMatchObject({ state: 'failed', derivedKey })
  const other = await command([...INSPECT, '--derive', 'another call', '--json', ...at])
  expect(JSON.parse(other.stdout).derivedKey).not.toBe(derivedKey)
})

test('shows labels and states of steps, and --rerun lets a refused operation go on after them', async () => {
  const { store, at } = await onRedis()
  const once = runner({ store, name: 'orders', unknownOutcome: 'refuse', onEvent() {} })
  const operation = { scope: 'acme', key: 'order-1', input: null }
  const order = (charge: () => string) =>
    once(operation, async (context) => {
      const charged = await context.step('charge', charge)
      await context.step('ship', () => {
        if (context.attempt === 1) throw new Error('The carrier did not answer.')
      })
      return charged
    })
  await expect(order(() => 'ch_secret')).rejects.toThrow('The carrier')
  await expect(order(() => 'again')).rejects.toMatchObject({ code: 'outcome_unknown' })
  const named = [...INSPECT, '--namespace', 'run.orders', ...at]
  const { stdout } = await command(named)
  expect(stdout).toMatch(/^steps +charge done, ship begun$/m)
  expect(stdout + (await command([...named, '--json'])).stdout).not.toContain('ch_secret')
  const resolve = ['resolve', ...named.slice(1), '--attempt', '1']
  expect((await command([...resolve, '--rerun', '--failed', '--yes'])).exitCode).toBe(2)
  const goesOn = await command([...resolve, '--rerun', '--yes'])
  expect([goesOn.exitCode, goesOn.stdout]).toEqual([
    0,
    'Attempt 1 may go on: the next request runs after the recorded steps.\n',
  ])
  expect((await command(named)).stdout).toMatch(/^means .*may go on with it$/m)
  expect(await order(() => 'again')).toBe('ch_secret')
})

test('--derive says so where the record is bound to no request any more', async () => {
  const { store, at } = await onRedis()
  await store.release('acme:order-1', { ...ownOf('owner'), uncertain: false, failedMs: 3_600_000 })
  const shown = await command([...INSPECT, '--derive', LABEL, ...at])
  expect([shown.exitCode, shown.stdout]).toEqual([
    1,
    expect.stringMatching(/^derived key +not known: the key is free/m),
  ])
  const { stdout } = await command([...INSPECT, '--derive', LABEL, '--json', ...at])
  expect(JSON.parse(stdout)).toMatchObject({ state: 'failed', derivedKey: null })
})

test('--derive without a label is a mistake of the command line', async () => {
  const { exitCode, stderr } = await command([...INSPECT, '--derive', '', '--redis', 'redis://localhost:1'])
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('--derive takes the label')])
})

test('a lease that has lapsed is shown with the time of day at which it ended', async () => {
  const { store, at } = await onRedis()
  const before = Date.now()
  await store.begin('acme:order-1', { ...claimOf('owner'), leaseMs: 1 })
  const { stdout } = await command([...INSPECT, ...at])
  const [, since = ''] = stdout.match(/^lease ended +(\S+Z)$/m) ?? []
  // The command's clock is read a moment after the store's.
  expect(Date.parse(since)).toBeGreaterThanOrEqual(before)
  expect(Date.parse(since)).toBeLessThanOrEqual(Date.now())
  const json = JSON.parse((await command([...INSPECT, '--json', ...at])).stdout)
  expect(Date.parse(json.leaseEndsAt)).toBeGreaterThanOrEqual(before)
})

test('an owner that is silent past its lease is uncertain in JSON too, wherever its record is shown', async () => {
  const { store, at } = await onRedis()
  await store.begin('acme:order-1', { ...claimOf('owner'), leaseMs: 1 })
  await store.begin('acme:order-2', { ...claimOf('owner'), leaseMs: 600_000 })
  const json = async (args: readonly string[]) => JSON.parse((await command([...args, '--json', ...at])).stdout)
  expect(await json(INSPECT)).toMatchObject({ state: 'in-flight', uncertain: true })
  expect(await json(['inspect', 'acme', 'order-2'])).toMatchObject({ state: 'in-flight', uncertain: false })
  expect(await json(['unknown'])).toMatchObject({ records: [{ key: 'order-1', uncertain: true }] })
  const { records } = await json(['list', '--scope', 'acme'])
  const uncertain = Object.fromEntries(
    records.map((each: { key: string; uncertain: boolean }) => [each.key, each.uncertain]),
  )
  expect(uncertain).toEqual({ 'order-1': true, 'order-2': false })
})

test('resolve --failed says which recorded steps it forgets, and asks with them', async () => {
  const { store, at } = await onRedis()
  const once = runner({ store, name: 'orders', onEvent() {} })
  const order = (key: string) =>
    once({ scope: 'acme', key, input: null }, async ({ step }) => {
      await step('charge', () => 'ch_secret')
      if (key === 'order-1') await step('mail', () => null)
      await step('ship', () => Promise.reject(new Error('The carrier did not answer.')))
    })
  for (const key of ['order-1', 'order-2', 'order-3']) await expect(order(key)).rejects.toThrow('The carrier')
  const failed = (key: string) =>
    ['resolve', 'acme', key, '--namespace', 'run.orders', '--attempt', '1', '--failed', ...at] as const

  const { stdout } = await command([...failed('order-1'), '--yes'])
  expect(stdout).toBe(
    'Attempt 1 is settled as failed: the key is free. The recorded steps "charge", "mail" were forgotten and run again.\n',
  )
  const json = await command([...failed('order-2'), '--yes', '--json'])
  expect(JSON.parse(json.stdout)).toEqual({ settled: true, attempt: 1, forgottenSteps: ['charge'] })

  const { shown } = await commandInTerminal(failed('order-3'), 'no')
  expect(shown).toContain(
    'The recorded step "charge" is forgotten and runs again. To go on after what is recorded, say no, and use --rerun.',
  )
  expect(shown).toContain('Nothing was changed: you said no.')
})

test('resolve names the attempt that it settled, and so does the record, which is not settled again', async () => {
  const { at } = await lostPayment()
  const resolve = ['resolve', 'acme', 'order-1', '--attempt', '1', '--failed', '--yes', ...at]
  const settled = await command(resolve)
  expect([settled.exitCode, settled.stdout]).toEqual([0, 'Attempt 1 is settled as failed: the key is free.\n'])
  const again = await command(resolve)
  expect([again.exitCode, again.stdout]).toEqual([1, 'Nothing was changed: its outcome is known: it is failed.\n'])
  const record = JSON.parse((await command([...INSPECT, '--json', ...at])).stdout)
  expect(record).toMatchObject({ state: 'failed', attempt: 1 })
})

test('resolve says of a run within its lease that it may still run', async () => {
  const { store, at } = await onRedis()
  await store.begin('acme:order-1', claimOf('owner'))
  const { exitCode, stdout } = await command([
    'resolve',
    'acme',
    'order-1',
    '--attempt',
    '1',
    '--failed',
    '--yes',
    ...at,
  ])
  expect([exitCode, stdout]).toEqual([
    1,
    expect.stringMatching(/^Nothing was changed: it may still run: its lease lasts for \d+ \w+ more\.$/m),
  ])
})

test('resolve --json names the attempt too', async () => {
  const { at } = await lostPayment()
  const { stdout } = await command([
    'resolve',
    'acme',
    'order-1',
    '--attempt',
    '1',
    '--completed',
    '--yes',
    '--json',
    ...at,
  ])
  expect(JSON.parse(stdout)).toEqual({ settled: true, attempt: 1 })
})

test.each([
  ['erased', ['forget', '--scope', 'acme', '--yes']],
  ['never given', ['resolve', 'acme', 'order-1', '--attempt', '1', '--completed', '--yes']],
])('of an answer that was %s it tells what retries get, and no status', async (how, settle) => {
  const { store, at } = await onRedis()
  const own = ownOf('owner')
  if (how === 'erased') await store.complete('acme:order-1', { ...own, answer: { ...ANSWER, status: 201 } })
  else await store.release('acme:order-1', { ...own, uncertain: true, failedMs: 1 })
  expect((await command([...settle, ...at])).exitCode).toBe(0)
  const { stdout } = await command([...INSPECT, ...at])
  expect(stdout).toMatch(/^means +it succeeded; retries get 409 answer_not_kept$/m)
  expect(stdout).not.toMatch(/^status/m)
  const json = JSON.parse((await command([...INSPECT, '--json', ...at])).stdout)
  expect(json).toMatchObject({ state: 'completed', answer: { bodyBytes: null } })
  expect(json.answer).not.toHaveProperty('status')
})

test('an answer that was too large to keep is shown with its own status', async () => {
  const { store, at } = await onRedis()
  const answer = { ...ANSWER, status: 201, body: null }
  await store.complete('acme:order-1', { ...ownOf('owner'), answer })
  const json = JSON.parse((await command([...INSPECT, '--json', ...at])).stdout)
  expect(json.answer).toMatchObject({ status: 201, bodyBytes: null })
})
