import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { dirname, join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { faultNames, faultsOf } from '../../examples/bad-network/faults.js'
import { type BuiltExample, buildExample } from '../support/built-example.js'
import { startPostgres } from '../support/postgres-server.js'
import { startRedis } from '../support/redis-server.js'
import { type NodeRun, runNode, runNodeWith } from '../support/run-node.js'
import { startBrokenPayments } from './broken-payments.js'
import { startExample } from './example-process.js'

let example: BuiltExample
let program: string

beforeAll(async () => {
  vi.stubEnv('REDIS_URL', '')
  vi.stubEnv('DATABASE_URL', '')
  example = await buildExample({ clients: ['redis', 'postgres'] })
  program = join(dirname(example.main), '../bad-network/main.js')
}, 60_000)

afterAll(async () => {
  vi.unstubAllEnvs()
  await example.remove()
})

const PROMISED = {
  'payments made twice or more': 0,
  'payments never finished': 0,
  'answers that differ': 0,
  'answers leaked to another merchant or payment': 0,
  'other amounts accepted under a used key': 0,
}

test.concurrent('every fault is met, and each payment is made exactly once', async () => {
  const { exitCode, stderr, stdout, counts } = await simulate('--seed', '7', '--operations', '100')
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(counts).toMatchObject({ ...PROMISED, 'operations wanted': 100, 'operations run': 100 })
  for (const fault of faultsOf({ withKill: false })) expect(counts[faultNames[fault]], fault).toBeGreaterThan(0)
  expect(stdout).toContain('All 100 payments were made exactly once.')
  const lines = stdout.split('\n')
  expect(lines[0]).toMatch(/with the Idempotency-Key header, seed 7$/)
  expect(lines).toContain('The same choices again:   npm run simulate -- --seed 7 --operations 100')
}, 60_000)

test.concurrent('the same clients without the key make payments twice, and that is no failure of the run', async () => {
  const { exitCode, stdout, counts } = await simulate('--seed', '7', '--operations', '100', '--unprotected')
  expect(exitCode).toBe(0)
  const twice = counts['payments made twice or more'] ?? 0
  expect(twice).toBeGreaterThan(10)
  expect(counts['operations run']).toBeGreaterThanOrEqual(100 + twice)
  expect(stdout).toMatch(
    new RegExp(
      `^Without the key, ${twice} of 100 payments were made twice or more: [\\d,]+\\.\\d\\d EUR too much\\.$`,
      'm',
    ),
  )
}, 60_000)

test.concurrent('on Redis a process is killed between effects and answers, payments are made once, and what was there stays', async ({
  onTestFinished: atEnd,
}) => {
  const redis = await startRedis()
  const client = new Redis(redis.url)
  atEnd(() => redis.close())
  atEnd(() => client.disconnect())
  await client.set('payments-books:{mer_acme}:payout:po_mine', 'mine')
  const { exitCode, stderr, stdout, counts } = await simulate('--redis', redis.url, '--operations', '100')
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toContain('Process 1 of 2 was killed (-9): 4 payments were made and not answered.')
  expect(stdout).toContain('It was started again.')
  expect(counts).toMatchObject({ ...PROMISED, 'operations run': 100, [faultNames.processKilled]: 4 })
  for (const fault of faultsOf({ withKill: true })) expect(counts[faultNames[fault]], fault).toBeGreaterThan(0)
  expect(await client.get('payments-books:{mer_acme}:payout:po_mine')).toBe('mine')
}, 60_000)

test.concurrent('on Postgres a process is killed between effects and COMMIT, nothing of it is left, and payments are made once', async ({
  onTestFinished: atEnd,
}) => {
  const postgres = await startPostgres()
  atEnd(() => postgres.close())
  const DATABASE_URL = await postgres.createDatabase('payments')
  const args = ['--postgres', '--seed', '7', '--operations', '100']
  const { exitCode, stderr, stdout, counts } = reportIn(await runNodeWith({ DATABASE_URL }, program, ...args))
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toContain('Process 1 of 2 was killed (-9): 2 payments were written and not committed.')
  expect(stdout).toContain('It was started again.')
  expect(counts).toMatchObject({ ...PROMISED, 'operations run': 100, [faultNames.processKilled]: 2 })
  for (const fault of faultsOf({ withKill: true })) expect(counts[faultNames[fault]], fault).toBeGreaterThan(0)
  const [{ runs } = {}] = await postgres.run(
    "SELECT sum((entry->>'runs')::int)::int AS runs FROM payments_books WHERE kind = 'operationRuns'",
    'payments',
  )
  expect(runs).toBe(100)
}, 90_000)

test.concurrent('without DATABASE_URL a Postgres is started for the run, and ended with it', async () => {
  const { exitCode, stderr, stdout, counts } = await simulate('--postgres', '--operations', '12')
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toContain('starting a Postgres for it…')
  expect(counts).toMatchObject({ ...PROMISED, 'operations run': 12 })
}, 90_000)

test('it runs against an example that is there already, and leaves it running', async () => {
  const { origin, child } = await startExample(example)
  const { exitCode, counts } = await simulate('--url', origin, '--operations', '20', '--clients', '10')
  expect(exitCode).toBe(0)
  expect(counts).toMatchObject({ ...PROMISED, 'operations run': 20 })
  expect(child.exitCode).toBeNull()
}, 60_000)

test.concurrent.for([
  ['runs every request', 'payments made twice or more'],
  ['forgets the merchant of a key', 'answers leaked to another merchant or payment'],
  ['answers a repeat anew', 'answers that differ'],
  ['carries out other bodies', 'other amounts accepted under a used key'],
  ['ignores bodies', 'other amounts accepted under a used key'],
  ['never carries anything out', 'payments never finished'],
] as const)(
  'a service that %s is found out: %s',
  { timeout: 60_000 },
  async ([flaw, finding], { onTestFinished: atEnd }) => {
    const origin = await startBrokenPayments(flaw, atEnd)
    const { exitCode, stdout, counts } = await simulate('--url', origin, '--operations', '40')
    expect(counts[finding]).toBeGreaterThan(0)
    expect(stdout).toContain('Not as promised.')
    expect(exitCode).toBe(1)
  },
)

test.concurrent('the same service without a flaw passes', { timeout: 60_000 }, async ({ onTestFinished: atEnd }) => {
  const origin = await startBrokenPayments('none', atEnd)
  const { exitCode, counts } = await simulate('--url', origin, '--operations', '40')
  expect(counts).toMatchObject(PROMISED)
  expect(exitCode).toBe(0)
})

test('a run that is interrupted takes the service along that it started', async () => {
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  const address = () => /sent to http:\/\/localhost:(\d+)/.exec(text)?.[1]
  await vi.waitFor(() => expect(address()).toBeDefined(), { interval: 5, timeout: 20_000 })
  child.kill('SIGINT')
  await once(child, 'close')
  expect(child.exitCode).toBe(130)
  await vi.waitFor(async () => expect(await accepts(Number(address()))).toBe(false), { timeout: 5_000 })
}, 60_000)

test('whoever reads it may stop: it ends without a word', async () => {
  const child = spawn(process.execPath, [program, '--operations', '40'], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    complaint += chunk
  })
  child.stdout.once('data', () => child.stdout.destroy())
  await once(child, 'close')
  expect([child.exitCode, complaint]).toEqual([1, ''])
}, 60_000)

test.each([
  [['--speed', '9'], "Unknown option '--speed'. See --help."],
  [['stray'], "Unexpected argument 'stray'. See --help."],
  [['--seed', 'abc'], '--seed must be an integer from 0 to 4294967295; seen: "abc".'],
  [['--operations', '0'], '--operations must be an integer from 1 to 100000; seen: "0".'],
  [['--clients', '1e3'], '--clients must be an integer from 1 to 200; seen: "1e3".'],
  [['--url', 'localhost:3000'], '--url must be like http://localhost:3000.'],
  [
    ['--redis', 'http://:secret@localhost'],
    '--redis must be like redis://localhost:6379 or rediss://user:password@host:6379/0.',
  ],
  [['--postgres', '--redis', 'redis://localhost'], 'Give one of --url, --redis and --postgres.'],
  [['--url', 'http://localhost:1', '--redis', 'redis://localhost'], 'Give one of --url, --redis and --postgres.'],
])('%j: one line, exit 2', async (args, line) => {
  expect(await runNode(program, ...args)).toEqual({ exitCode: 2, stdout: '', stderr: `${line}\n` })
})

test('nobody at the address: one line, exit 2', async () => {
  const { exitCode, stderr } = await runNode(program, '--url', 'http://127.0.0.1:9')
  expect(exitCode).toBe(2)
  expect(stderr).toMatch(/^Nothing answers at http:\/\/127\.0\.0\.1:9: .+\.\n$/)
})

test('another service at the address: one line, exit 2', async () => {
  const origin = await listening(createServer((_req, res) => void res.writeHead(404).end('Not here')))
  const { exitCode, stderr } = await runNode(program, '--url', origin)
  expect(exitCode).toBe(2)
  expect(stderr).toBe(
    `${origin} is not the payments example: ${origin}/demo/operations/never-seen does not say how often an operation ran.\n`,
  )
})

test('a Redis that is away: one line, exit 2', async () => {
  const { exitCode, stderr } = await runNode(program, '--redis', 'redis://127.0.0.1:9')
  expect([exitCode, stderr]).toEqual([2, 'The service cannot reach its redis.\n'])
}, 30_000)

test('--help says what it does and how to use it', async () => {
  const { exitCode, stdout, stderr } = await runNode(program, '--help')
  expect([exitCode, stderr]).toEqual([0, ''])
  for (const option of ['url', 'redis', 'postgres', 'unprotected', 'seed', 'operations', 'clients']) {
    expect(stdout).toContain(`\n  --${option} `)
  }
})

/** A run, with the numbers of its report by what they count. */
async function simulate(...args: readonly string[]) {
  return reportIn(await runNode(program, ...args))
}

function reportIn(ended: NodeRun) {
  const rows = [...ended.stdout.matchAll(/^ {2}(\S.*?) {2,}([\d,]+)(?: {2}[✓✗])?$/gm)]
  const counts = Object.fromEntries(rows.map(([, words, count]) => [words, Number(count?.replaceAll(',', ''))]))
  return { ...ended, counts: counts as Readonly<Record<string, number>> }
}

async function listening(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, 'localhost')
    socket
      .once('error', () => resolve(false))
      .once('connect', () => {
        socket.destroy()
        resolve(true)
      })
  })
}
