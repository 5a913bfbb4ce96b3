import { execFile, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type BuiltExample, buildExample } from '../support/built-example.js'
import { startExample } from './example-process.js'
import { send } from './payments-service.js'

const PATH = '/api/service/payout/create'
const BODY = { amount: 100, currency: 'EUR' }

let example: BuiltExample

beforeAll(async () => {
  example = await buildExample()
}, 60_000)

afterAll(() => example.remove())

test('the built example has the library by its own name, not inside', async () => {
  const built = await readFile(example.main, 'utf8')
  expect([...built.matchAll(/from "(once-per-key[^"]*)"/g)].map(([, name]) => name)).toEqual(
    expect.arrayContaining(['once-per-key', 'once-per-key/memory']),
  )
})

test('without REDIS_URL nothing of Redis is loaded: this build has neither its client nor its store', async () => {
  await startExample(example)
  const { status, stderr } = run({ PORT: '0', REDIS_URL: 'redis://localhost:1' })
  expect(status).toBe(1)
  expect(stderr).toContain("Cannot find package 'ioredis'")
})

test('it starts and prints three lines to try: first, replay, conflict', async () => {
  const { log, curlLines } = await startExample(example)
  expect(curlLines).toHaveLength(3)
  expect(curlLines[1]).toBe(curlLines[0])

  const first = await runCurl(curlLines[0] as string)
  const replay = await runCurl(curlLines[1] as string)
  const conflict = await runCurl(curlLines[2] as string)
  expect([first.status, replay.status, conflict.status]).toEqual([201, 201, 409])
  expect([first.replayed, replay.replayed]).toEqual([false, true])
  expect(replay.body).toBe(first.body)
  expect(JSON.parse(conflict.body).code).toBe('mismatched')

  const decisions = () => log().map((line) => line.msg)
  await vi.waitFor(() => expect(decisions()).toEqual(['claimed', 'completed', 'replayed', 'mismatched']))
})

test('SIGTERM in the middle of a slow request: it gets its answer, new connections are refused, then exit 0', async () => {
  const { child, output, log, origin, exit } = await startExample(example)
  const request = { body: BODY, key: randomUUID() }
  const slow = send(origin + PATH, { ...request, headers: { 'x-demo-delay-ms': '1200' } })
  await vi.waitFor(() => expect(output()).toContain('"claimed"'), { interval: 5 })
  const duplicate = await send(origin + PATH, request)
  expect(duplicate.json.code).toBe('in_flight')

  child.kill('SIGTERM')
  await vi.waitFor(() => expect(output()).toContain('"stopping"'), { interval: 5 })
  expect(await canConnect(origin)).toBe(false)
  expect((await slow).status).toBe(201)
  expect(await exit()).toBe(0)
  const decisions = log().map((line) => line.msg)
  expect(decisions).toEqual(['claimed', 'in_flight', 'stopping', 'completed', 'stopped'])
}, 20_000)

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s ends it although clients keep connections open',
  async (signal) => {
    const { child, origin, exit } = await startExample(example)
    await send(`${origin}/health`, { method: 'GET' }) // fetch keeps its connection for later.
    const silent = connect(Number(new URL(origin).port), '127.0.0.1')
    await once(silent, 'connect')
    const sentAt = performance.now()
    child.kill(signal)
    expect(await exit()).toBe(0)
    expect(performance.now() - sentAt).toBeLessThan(4_500) // Node ends a connection that nobody uses after five seconds.
    silent.destroy()
  },
  20_000,
)

test('a second signal ends it at once', async () => {
  const { child, output, origin, exit } = await startExample(example)
  const slow = send(origin + PATH, { body: BODY, headers: { 'x-demo-delay-ms': '10000' }, key: 'slow' })
  const failure = slow.catch((error: Error) => error.name)
  await vi.waitFor(() => expect(output()).toContain('"claimed"'), { interval: 5 })
  child.kill('SIGTERM')
  await vi.waitFor(() => expect(output()).toContain('"stopping"'), { interval: 5 })
  child.kill('SIGTERM')
  expect(await exit()).toBe(1)
  expect(await failure).toBe('TypeError')
}, 20_000)

test.each([
  [{ PORT: 'abc' }, 'PORT must be an integer from 0 to 65535; seen: "abc".'],
  [{ PORT: '-1' }, 'PORT must be an integer from 0 to 65535; seen: "-1".'],
  [{ PORT: '65536' }, 'PORT must be an integer from 0 to 65535; seen: "65536".'],
  [{ PORT: '80.5' }, 'PORT must be an integer from 0 to 65535; seen: "80.5".'],
  [
    { REDIS_URL: 'http://:secret@localhost' },
    'REDIS_URL must be like redis://localhost:6379 or rediss://user:password@host:6379/0.',
  ],
  [
    { HOST: '192.0.2.1', PORT: '0' },
    'Cannot listen on 192.0.2.1: EADDRNOTAVAIL. Set HOST to an address of this machine, or leave it out.',
  ],
  [{ DEMO_LEASE_MS: '1' }, 'DEMO_LEASE_MS must be an integer from 1000 to 60000; seen: "1".'],
])('%o: one line, exit 1', (variables, line) => {
  expect(run(variables)).toEqual({ status: 1, stdout: '', stderr: `${line}\n` })
})

test('a port in use: one line, exit 1', async () => {
  const { origin } = await startExample(example)
  const { port } = new URL(origin)
  expect(run({ PORT: port })).toEqual({
    status: 1,
    stdout: '',
    stderr: `Cannot listen on port ${port}: it is in use. Set PORT to another one; PORT=0 picks one that is free.\n`,
  })
})

/** To its end. */
function run(variables: object) {
  const env = { ...process.env, HOST: '', ...variables }
  const { status, stdout, stderr } = spawnSync(process.execPath, [example.main], { env, encoding: 'utf8' })
  return { status, stdout, stderr }
}

function canConnect(origin: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** As a shell with curl runs it; where there is no curl, fetch reads the same line. */
async function runCurl(line: string): Promise<{ status: number; replayed: boolean; body: string }> {
  if (spawnSync('curl', ['--version']).error === undefined) {
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', line])
    const [head = '', body = ''] = stdout.split('\r\n\r\n')
    return { status: Number(head.split(' ')[1]), replayed: /^idempotent-replayed: true/im.test(head), body }
  }
  const headers = [...line.matchAll(/-H '([^:]+): ([^']*)'/g)].map(([, name, value]) => [name, value])
  const response = await fetch(/http:\S+/.exec(line)?.[0] as string, {
    method: 'POST',
    headers: Object.fromEntries(headers),
    body: /-d '([^']*)'/.exec(line)?.[1] as string,
  })
  return {
    status: response.status,
    replayed: response.headers.get('idempotent-replayed') === 'true',
    body: await response.text(),
  }
}
