import { type ChildProcess, spawn } from 'node:child_process'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { installNode } from '../../../test/support/node-binary.mjs'
import { installInto, packPackage } from '../../../test/support/packed-package.js'
import { INTEGRATIONS } from '../support/installed.js'
import { installRuntime } from '../support/runtimes.js'

// The first run installs them.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 600_000 })

let packed: Awaited<ReturnType<typeof packPackage>>
let project: string
beforeAll(async () => {
  packed = await packPackage()
  project = join(packed.folder, 'app')
  await installInto(project, packed.tarball, 'module')
  for (const name of ['app.mjs', 'serve.mjs', 'worker.mjs', 'worker.capnp']) {
    await copyFile(join(INTEGRATIONS, 'test/runtimes/programs', name), join(project, name))
  }
})
afterAll(() => packed?.remove())

/** What starts the application, and prints its port. */
type Start = () => Promise<{ command: string; args: readonly string[] }>

const onNode = (version: number): Start => {
  return async () => {
    const command = installNode(version)
    if (command === undefined) throw new Error(`Node ${version} could not be installed.`)
    return { command, args: ['serve.mjs'] }
  }
}

const RUNTIMES: readonly { readonly name: string; readonly start: Start }[] = [
  { name: 'Node 20 or what runs this', start: async () => ({ command: process.execPath, args: ['serve.mjs'] }) },
  { name: 'Node 22', start: onNode(22) },
  { name: 'Node 24', start: onNode(24) },
  { name: 'Node 26', start: onNode(26) },
  { name: 'Bun', start: async () => ({ command: installRuntime('bun'), args: ['serve.mjs'] }) },
  {
    name: 'Deno',
    // Nothing but what it needs: no environment, no programs, no system calls.
    start: async () => ({ command: installRuntime('deno'), args: ['run', '--allow-net', 'serve.mjs'] }),
  },
  {
    name: 'workerd',
    async start() {
      // As a tool that deploys Workers does: the modules of Node stay imports, by the names that begin with node:.
      await build({
        entryPoints: [join(project, 'worker.mjs')],
        outfile: join(project, 'worker.js'),
        bundle: true,
        format: 'esm',
        platform: 'neutral',
        mainFields: ['module', 'main'],
        external: ['node:*'],
        logLevel: 'silent',
      })
      return { command: installRuntime('workerd'), args: ['serve', 'worker.capnp', '--control-fd=1'] }
    },
  },
]

describe.each(RUNTIMES)('$name', ({ start }) => {
  let origin: string
  let child: ChildProcess
  beforeAll(async () => {
    const { command, args } = await start()
    child = spawn(command, args, { cwd: project, stdio: ['ignore', 'pipe', 'inherit'] })
    origin = `http://127.0.0.1:${await portFrom(child)}`
  })
  afterAll(() => child?.kill('SIGKILL'))

  async function send(
    path: string,
    { body = '{"amount":100}', type = 'application/json', key = 'k', signal }: Sent = {},
  ) {
    const headers = { 'Content-Type': type, 'Idempotency-Key': key }
    const init = { method: 'POST', headers, body, ...(signal && { signal }) }
    const response = await fetch(`${origin}/${path}`, init)
    const bytes = Buffer.from(await response.arrayBuffer())
    const header = (name: string) => response.headers.get(name)
    return { status: response.status, header, bytes, text: bytes.toString(), replayed: header('Idempotent-Replayed') }
  }

  test('runs a handler once, replays its answer, and refuses another request under its key', async () => {
    const [first, replay] = [await send('json'), await send('json', { body: ' {"amount":1e2}' })]
    expect([first.status, first.text, first.replayed]).toEqual([
      201,
      '{"run":1,"attempt":1,"body":{"amount":100}}',
      null,
    ])
    expect([replay.status, replay.text, replay.replayed]).toEqual([201, first.text, 'true'])
    expect(replay.header('X-Receipt')).toBe('17')
    expect((await send('json', { body: '{"amount":200}' })).text).toContain('"code":"mismatched"')
  })

  test('hands bytes on, and replays them', async () => {
    const body = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
    const bytes = { body, type: 'application/octet-stream', key: 'bytes' }
    expect((await send('bytes', bytes)).bytes).toEqual(body)
    const replay = await send('bytes', bytes)
    expect([replay.bytes, replay.replayed]).toEqual([body, 'true'])
  })

  test('tells the attempt behind a failure that the outcome is unknown', async () => {
    expect((await send('fails', { key: 'fails' })).status).toBe(500)
    expect((await send('fails', { key: 'fails' })).text).toBe('unknown')
  })

  test('streams what is more than is kept', async () => {
    const chunks = Array.from({ length: 8 }, (_, i) => Buffer.alloc(1_024, i))
    expect((await send('stream', { key: 'stream' })).bytes).toEqual(Buffer.concat(chunks))
    expect((await send('stream', { key: 'stream' })).text).toContain('"code":"answer_not_kept"')
  })

  test('goes on when the client leaves', async () => {
    const left = new AbortController()
    const leaving = send('slow', { key: 'slow', signal: left.signal })
    const retry = async () => (await send('slow', { key: 'slow' })).text
    await expect.poll(retry).toContain('in_flight')
    left.abort()
    await expect(leaving).rejects.toThrow()
    await expect.poll(retry, { timeout: 10_000 }).toBe('run 1')
  })
})

interface Sent {
  readonly body?: string | Buffer<ArrayBuffer>
  readonly type?: string
  readonly key?: string
  readonly signal?: AbortSignal
}

async function portFrom(child: ChildProcess): Promise<number> {
  let printed = ''
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code) => reject(new Error(`It ended with ${code}, and printed: ${printed}`)))
    child.stdout?.on('data', (chunk) => {
      printed += chunk
      const [, port] = /^(\d+)\s*$/m.exec(printed) ?? /"port":(\d+)/.exec(printed) ?? []
      if (port !== undefined) resolve(Number(port))
    })
  })
}
