import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { openClient } from '../../examples/bad-network/client.js'
import { faultNames, faultsOf } from '../../examples/bad-network/faults.js'
import { commandOf, optionsOf } from '../../examples/bad-network/options.js'
import { type Payment, type PlanOptions, planOf, wantedIn } from '../../examples/bad-network/plan.js'
import { openRecords } from '../../examples/bad-network/records.js'
import { isAsPromised, verdictOf } from '../../examples/bad-network/verdict.js'

const OPTIONS: PlanOptions = { seed: 7, operations: 200, run: 'sim-1', withKill: true }

test('a seed makes the same plan each time, and other seeds make others', () => {
  expect(shown(OPTIONS)).toBe(shown(OPTIONS))
  expect(shown({ ...OPTIONS, seed: 8 })).not.toBe(shown(OPTIONS))
  expect(shown({ ...OPTIONS, run: 'sim-2' }).replaceAll('sim-2', 'sim-1')).toBe(shown(OPTIONS))
})

test('how long a client waits comes from the seed, whoever was faster', () => {
  const waits = (payments: readonly Payment[]) => {
    const senders = payments.flatMap((payment) => payment.senders)
    return senders.map(({ choices }) => choices.between(0, 1_000_000))
  }
  const again = planOf(OPTIONS).payments
  expect(waits([...again].reverse()).sort()).toEqual(waits(planOf(OPTIONS).payments).sort())
})

test.each([1, 2, 3, 4, 5, 7, 8, 20, 100, 101])(
  'a plan for %i operations wants so many, each by its own name',
  (operations) => {
    for (const withKill of [true, false]) {
      const wanted = wantedIn(planOf({ ...OPTIONS, operations, withKill }))
      expect(wanted).toHaveLength(operations)
      expect(new Set(wanted.map(({ name, merchant }) => `${name} ${merchant.name}`)).size).toBe(operations)
      for (const { name, changed } of wanted) expect(changed?.name ?? name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    }
  },
)

test('a key that both merchants use comes with the same request, and a changed body differs in its amount', () => {
  const { payments } = planOf(OPTIONS)
  const pairs = payments.flatMap((payment) => (payment.shared ? [[payment, payment.shared] as const] : []))
  expect(pairs.length).toBeGreaterThan(5)
  for (const [one, other] of pairs) {
    expect([other.key, other.path, other.body]).toEqual([one.key, one.path, one.body])
    expect(other.merchant).not.toBe(one.merchant)
  }
  for (const { changed, ...payment } of payments) {
    if (changed === undefined) continue
    expect([changed.path, changed.name]).toEqual([payment.path, `${payment.name}-changed`])
    expect(changed.amount).not.toBe(payment.amount)
  }
})

test('a client sends the same until the service has the last word, and not before Retry-After', async () => {
  const { origin, requests } = await serviceThatSays(
    [503, {}],
    [409, { 'x-should-retry': 'true', 'retry-after': '1' }],
    [201, {}],
  )
  const records = openRecords()
  const [payment] = planOf(OPTIONS).payments as [Payment]
  const send = openClient({ origins: [origin], isProtected: true, records })
  const end = await send(payment, { ...(payment.senders[0] as Payment['senders'][0]), tries: [] })
  expect(end?.status).toBe(201)
  expect(records.seen.requests).toBe(3)
  expect(new Set(requests.map(({ key, body }) => `${key} ${body}`)).size).toBe(1)
  expect(requests[0]?.key).toBe(payment.key)
  // A lower bound: the pause of a client that does not read the header is a tenth of it.
  expect((requests[2]?.atMs ?? 0) - (requests[1]?.atMs ?? 0)).toBeGreaterThan(900)
})

test.each([
  [409, { 'x-should-retry': 'false' }],
  [503, { 'x-should-retry': 'false' }],
  [400, {}],
  [409, {}],
])('a client takes %i with %j for the last word', async (status, headers) => {
  const { origin, requests } = await serviceThatSays([status, headers], [201, {}])
  const [payment] = planOf(OPTIONS).payments as [Payment]
  const send = openClient({ origins: [origin], isProtected: true, records: openRecords() })
  const end = await send(payment, { ...(payment.senders[0] as Payment['senders'][0]), tries: [] })
  expect([end?.status, requests.length]).toEqual([status, 1])
})

test('a long run that did not meet each fault fails, and a short one does not', () => {
  for (const operations of [99, 100]) {
    const plan = planOf({ ...OPTIONS, operations })
    const made = wantedIn(plan).map((payment) => ({ payment, times: 1 }))
    const records = openRecords()
    for (const fault of faultsOf({ withKill: true })) if (fault !== 'hungUp') records.struck(fault)
    const verdict = verdictOf({ seen: records.seen, made, changesMade: 0 }, { withKill: true })
    expect(verdict.untried).toEqual(operations === 100 ? ['hungUp'] : [])
    expect(isAsPromised(verdict)).toBe(operations === 99)
    records.struck('hungUp')
    expect(isAsPromised(verdictOf({ seen: records.seen, made, changesMade: 0 }, { withKill: true }))).toBe(true)
  }
  expect(faultsOf({ withKill: false })).toHaveLength(Object.keys(faultNames).length - 1)
})

test('what was paid too much is counted, and what was not made', () => {
  const [one, two, three] = wantedIn(planOf({ ...OPTIONS, operations: 3 })) as [Payment, Payment, Payment]
  const made = [
    { payment: one, times: 3 },
    { payment: two, times: 1 },
    { payment: three, times: 0 },
  ]
  const verdict = verdictOf({ seen: openRecords().seen, made, changesMade: 0 }, { withKill: true })
  expect(verdict).toMatchObject({ wanted: 3, run: 4, duplicates: 1, tooMuch: 2 * one.amount, unfinished: 1 })
  expect(verdict.examples).toEqual([`${one.key} of ${one.merchant.name}: 3`])
  expect(isAsPromised(verdict)).toBe(false)
})

test('REDIS_URL counts unless an address is given, and its password is not printed', () => {
  const env = { REDIS_URL: 'redis://:secret@localhost:6379' }
  expect(optionsOf([], env).shared).toEqual({ name: 'Redis', url: env.REDIS_URL })
  expect(optionsOf(['--url', 'http://localhost:3000/'], env)).toMatchObject({ url: 'http://localhost:3000' })
  expect(optionsOf(['--url', 'http://localhost:3000/'], env).shared).toBeUndefined()
  expect(commandOf(optionsOf(['--seed', '5', '--unprotected'], env))).toBe('npm run simulate -- --seed 5 --unprotected')
  expect(commandOf(optionsOf(['--seed', '5', '--redis', 'redis://localhost'], env))).toBe(
    'npm run simulate -- --seed 5 --redis redis://localhost',
  )
})

test('DATABASE_URL counts with --postgres alone, and is not printed', () => {
  const env = { DATABASE_URL: 'postgres://app:secret@localhost/payments', REDIS_URL: 'redis://localhost' }
  expect(optionsOf(['--postgres'], env).shared).toEqual({ name: 'Postgres', url: env.DATABASE_URL })
  expect(optionsOf(['--postgres'], {}).shared).toEqual({ name: 'Postgres' })
  expect(optionsOf([], env).shared).toEqual({ name: 'Redis', url: env.REDIS_URL })
  expect(commandOf(optionsOf(['--seed', '5', '--postgres'], env))).toBe('npm run simulate -- --seed 5 --postgres')
  expect(() => optionsOf(['--postgres'], { DATABASE_URL: 'mysql://app:secret@localhost' })).toThrow(
    /^DATABASE_URL must be like postgres:\/\/user:password@localhost:5432\/payments\.$/,
  )
})

function shown(options: PlanOptions): string {
  return JSON.stringify(planOf(options))
}

/** Answers as it is told to, one after the other. */
async function serviceThatSays(...answers: readonly (readonly [status: number, headers: Record<string, string>])[]) {
  const requests: { key: string | undefined; body: string; atMs: number }[] = []
  const server = createServer(async (req, res) => {
    const atMs = performance.now()
    const key = req.headers['idempotency-key'] as string | undefined
    const [status, headers] = answers[requests.length] ?? [500, {}]
    requests.push({ key, body: await text(req), atMs })
    res.writeHead(status, headers).end('{}')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}
