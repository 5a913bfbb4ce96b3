import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'tsup'
import { afterAll, beforeAll, expect, test } from 'vitest'

const directory = mkdtempSync(join(tmpdir(), 'once-per-key-exit-'))
const root = fileURLToPath(new URL('../../', import.meta.url))

beforeAll(async () => {
  await build({
    entry: { http: join(root, 'src/http/index.ts'), memory: join(root, 'adapters/memory/index.ts') },
    outDir: directory,
    outExtension: () => ({ js: '.mjs' }),
    format: 'esm',
    target: 'node20',
    noExternal: [/./],
    config: false,
    silent: true,
  })
}, 30_000)
afterAll(() => rmSync(directory, { recursive: true }))

const urlOf = (name: string) => JSON.stringify(pathToFileURL(join(directory, name)).href)

/** Runs it in a process of its own, and says how it exited: a timer of ours would keep it until vitest gives up. */
async function exitOf(body: string): Promise<string> {
  const script = `
    import { createRequestEngine } from ${urlOf('http.mjs')}
    import { MemoryStore } from ${urlOf('memory.mjs')}
    const hang = () => new Promise(() => {})
    const inner = new MemoryStore()
    const commands = Object.fromEntries(['begin', 'renew', 'complete', 'release'].map((name) => [name, (...args) => inner[name](...args)]))
    const store = { ...commands }
    const engine = createRequestEngine({ store, scope: () => 'acme', inFlightWaitMs: 600_000, leaseMs: 600_000, storeTimeoutMs: 100_000 })
    const decide = () => engine.decide({ request: {}, method: 'POST', target: '/', rawHeaders: ['Idempotency-Key', 'a'], body: {},
      bodyWasRead: true, isAbandoned: () => false })
    const answer = { status: 200, statusMessage: '', headers: [], body: Buffer.from('') }
    ${body}
    process.stdout.write('reached')
  `
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  const [code] = await once(child, 'close')
  return `${output} ${code}`
}

test.each([
  { name: 'a run whose lease is renewed', body: 'await decide()' },
  { name: 'a duplicate that waits', body: 'await decide(); void decide(); await new Promise(setImmediate)' },
  { name: 'a claim that is not answered', body: 'store.begin = hang; void decide(); await new Promise(setImmediate)' },
  {
    name: 'a completion that is not answered',
    body: 'const { run } = await decide(); store.complete = hang; void run.settle(answer)',
  },
  {
    name: 'a pending completion',
    body: `const { run } = await decide()
      store.complete = () => Promise.reject(new Error('down'))
      await run.settle(answer)`,
  },
  {
    name: 'a pending release',
    body: `const { run } = await decide()
      store.release = () => Promise.reject(new Error('down'))
      await run.fail()`,
  },
  {
    name: 'a claim that was given up',
    body: `store.begin = store.release = () => Promise.reject(new Error('down'))
      await decide()`,
  },
])('$name keeps no process alive', async ({ body }) => {
  expect(await exitOf(body)).toBe('reached 0')
})
