import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { type BuiltExample, buildExample } from '../support/built-example.js'
import { type ExampleProcess, startExample } from './example-process.js'
import { send } from './payments-service.js'

vi.setConfig({ testTimeout: 60_000 })

const PATH = '/api/service/payout/create'
const BODY = { amount: 100, currency: 'EUR' }

let example: BuiltExample
let file: string

beforeAll(async () => {
  example = await buildExample({ clients: ['sqlite'] })
}, 60_000)

afterAll(() => example.remove())

beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-file-'))
  file = join(folder, 'payments.db')
  onTestFinished(() => rmSync(folder, { recursive: true }))
})

test('a payment and its record survive kill -9: a retry at the next process replays it, and it was made once', async () => {
  const request = { body: BODY, key: randomUUID(), headers: { 'x-demo-operation': 'survives' } }
  const first = await start()
  const answer = await send(first.origin + PATH, request)
  expect(answer.status).toBe(201)
  await kill(first)

  const second = await start()
  const retry = await send(second.origin + PATH, request)
  expect([retry.status, retry.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
  expect(retry.json).toEqual(answer.json)
  expect(await runs(second, 'survives')).toBe(1)
})

test('a process that is killed behind its effect leaves none of it, and the retry pays once', async () => {
  const request = { body: BODY, key: randomUUID(), headers: { 'x-demo-operation': 'undone' } }
  const first = await start()
  const lost = send(first.origin + PATH, { ...request, headers: { ...request.headers, 'x-demo-crash': 'true' } })
  lost.catch(() => {})
  await vi.waitFor(() => expect(first.output()).toContain('"claimed"'), { interval: 5 })
  await kill(first)
  await expect(lost).rejects.toThrow()

  const second = await start()
  expect(await runs(second, 'undone')).toBe(0)
  await vi.waitFor(async () => expect((await send(second.origin + PATH, request)).status).toBe(201), {
    interval: 200,
    timeout: 10_000,
  })
  expect(await runs(second, 'undone')).toBe(1)
})

test('two processes on one file are one service', async () => {
  const request = { body: BODY, key: randomUUID(), headers: { 'x-demo-operation': 'shared' } }
  const [one, other] = await Promise.all([start(), start()])
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, i) => send((i % 2 ? one : other).origin + PATH, request)),
  )
  for (const { status } of answers) expect([201, 409]).toContain(status)
  expect([await runs(one, 'shared'), await runs(other, 'shared')]).toEqual([1, 1])
})

test('the greeting says that records and books outlive it', async () => {
  expect((await start()).output()).toContain('Its records and books outlive it.')
})

test.each([':memory:', '/nowhere/payments.db'])('SQLITE_FILE=%s: one line, and it does not start', async (given) => {
  await expect(startExample(example, { SQLITE_FILE: given })).rejects.toThrow(/SQLITE_FILE cannot be used: .+/)
})

function start(): Promise<ExampleProcess> {
  return startExample(example, { SQLITE_FILE: file, DEMO_LEASE_MS: '3000' })
}

async function kill({ child }: ExampleProcess): Promise<void> {
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}

async function runs({ origin }: ExampleProcess, name: string): Promise<number> {
  return (await send(`${origin}/demo/operations/${name}`, { method: 'GET' })).json.runs
}
