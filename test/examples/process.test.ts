import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { type BuiltExample, buildExample } from '../support/built-example.js'
import { send } from './payments-service.js'

const PATH = '/api/service/payout/create'
const BODY = { amount: 100, currency: 'EUR' }

let example: BuiltExample
const running: ChildProcess[] = []

beforeAll(async () => {
  example = await buildExample()
}, 60_000)

afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL')
})

afterAll(() => example.remove())

test('the built example has the library by its own name, not inside', async () => {
  const built = await readFile(example.main, 'utf8')
  expect([...built.matchAll(/from "(once-per-key[^"]*)"/g)].map(([, name]) => name)).toEqual(
    expect.arrayContaining(['once-per-key', 'once-per-key/memory']),
  )
})

test('it starts and prints three lines to try: first, replay, conflict', async () => {
  const { output, curlLines } = await start()
  expect(curlLines).toHaveLength(3)
  expect(curlLines[1]).toBe(curlLines[0])

  const first = await runCurl(curlLines[0] as string)
  const replay = await runCurl(curlLines[1] as string)
  const conflict = await runCurl(curlLines[2] as string)
  expect([first.status, replay.status, conflict.status]).toEqual([201, 201, 409])
  expect([first.replayed, replay.replayed]).toEqual([false, true])
  expect(replay.body).toBe(first.body)
  expect(JSON.parse(conflict.body).code).toBe('mismatched')

  const decisions = () => jsonLines(output()).map((line) => line.msg)
  await vi.waitFor(() => expect(decisions()).toEqual(['claimed', 'completed', 'replayed', 'mismatched']))
})

test('SIGTERM in the middle of a slow request: it gets its answer, new connections are refused, then exit 0', async () => {
  const { child, output, origin } = await start()
  const request = { body: BODY, key: randomUUID() }
  const slow = send(origin + PATH, { ...request, headers: { 'x-demo-delay-ms': '1200' } })
  await vi.waitFor(() => expect(output()).toContain('"claimed"'), { interval: 5 })
  const duplicate = await send(origin + PATH, request)
  expect(duplicate.json.code).toBe('in_flight')

  child.kill('SIGTERM')
  await vi.waitFor(() => expect(output()).toContain('"stopping"'), { interval: 5 })
  expect(await canConnect(origin)).toBe(false)
  expect((await slow).status).toBe(201)
  expect(await exit(child)).toBe(0)
  const decisions = jsonLines(output()).map((line) => line.msg)
  expect(decisions).toEqual(['claimed', 'in_flight', 'stopping', 'completed', 'stopped'])
}, 20_000)

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s ends it although clients keep connections open',
  async (signal) => {
    const { child, origin } = await start()
    await send(`${origin}/health`, { method: 'GET' }) // fetch keeps its connection for later.
    const silent = connect(Number(new URL(origin).port), 'localhost')
    await once(silent, 'connect')
    child.kill(signal)
    expect(await exit(child)).toBe(0)
    silent.destroy()
  },
  4_500,
)

test('a second signal ends it at once', async () => {
  const { child, output, origin } = await start()
  const slow = send(origin + PATH, { body: BODY, headers: { 'x-demo-delay-ms': '10000' }, key: 'slow' })
  const failure = slow.catch((error: Error) => error.name)
  await vi.waitFor(() => expect(output()).toContain('"claimed"'), { interval: 5 })
  child.kill('SIGTERM')
  await vi.waitFor(() => expect(output()).toContain('"stopping"'), { interval: 5 })
  child.kill('SIGTERM')
  expect(await exit(child)).toBe(1)
  expect(await failure).toBe('TypeError')
}, 20_000)

test.each(['abc', '-1', '65536', '80.5'])('PORT=%s: one line, exit 1', async (port) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [example.main], {
    env: { ...process.env, PORT: port },
    encoding: 'utf8',
  })
  expect([status, stdout]).toEqual([1, ''])
  expect(stderr).toBe(`PORT must be a whole number from 0 to 65535; seen: "${port}".\n`)
})

test('a port in use: one line, exit 1', async () => {
  const other = createServer().listen(0)
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const child = spawn(process.execPath, [example.main], { env: { ...process.env, PORT: String(port) } })
  running.push(child)
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  expect(await exit(child)).toBe(1)
  other.close()
  expect(errors).toBe(
    `Cannot listen on port ${port}: it is in use. Set PORT to another one; PORT=0 picks one that is free.\n`,
  )
})

async function start() {
  const child = spawn(process.execPath, [example.main], { env: { ...process.env, PORT: '0' } })
  running.push(child)
  let text = ''
  child.stdout.on('data', (chunk) => {
    text += chunk
  })
  child.stderr.on('data', (chunk) => {
    text += chunk
  })
  await vi.waitFor(() => expect(text.match(/^curl .*\n/gm)).toHaveLength(3), { interval: 5, timeout: 10_000 })
  const curlLines = text.split('\n').filter((line) => line.startsWith('curl '))
  const [origin = ''] = /http:\/\/localhost:\d+/.exec(text) ?? []
  return { child, output: () => text, curlLines, origin }
}

async function exit(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'close') // All output has been read.
  return child.exitCode
}

function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
}

function canConnect(origin: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(origin).port), 'localhost')
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
