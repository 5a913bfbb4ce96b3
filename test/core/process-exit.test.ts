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
async function exitOf(
  body: string,
  times = 'inFlightWaitMs: 600_000, leaseMs: 600_000, storeTimeoutMs: 100_000',
): Promise<string> {
  const script = `
    import { createRequestEngine } from ${urlOf('http.mjs')}
    import { MemoryStore } from ${urlOf('memory.mjs')}
    const hang = () => new Promise(() => {})
    const inner = new MemoryStore()
    const commands = Object.fromEntries(['begin', 'renew', 'complete', 'release'].map((name) => [name, (...args) => inner[name](...args)]))
    const store = { ...commands }
    const engine = createRequestEngine({ store, scope: () => 'acme', ${times}, onEvent: () => {} })
    const facts = { request: {}, method: 'POST', target: '/', rawHeaders: ['Idempotency-Key', 'a'], body: {}, bodyWasRead: true,
      isAbandoned: () => false }
    const decide = () => engine.decide(facts)
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
  {
    name: 'a repeated completion that is not answered',
    body: `const { run } = await decide()
      let copies = 0
      const alive = setInterval(() => {}, 1_000)
      await new Promise((sent) => {
        store.complete = () => (++copies === 1 ? Promise.reject(new Error('down')) : (sent(), hang()))
        void run.settle(answer)
      })
      clearInterval(alive)`,
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

const SHORT = 'inFlightWaitMs: 200, leaseMs: 600_000, storeTimeoutMs: 100'

test.each([
  {
    name: 'a duplicate that waits for the owner in its process',
    body: "await decide(); process.stdout.write((await decide()).problem.code + ', ')",
    output: 'in_flight',
  },
  {
    name: 'a duplicate that waits for an owner elsewhere',
    body: `const elsewhere = createRequestEngine({ store, scope: () => 'acme' })
      await elsewhere.decide(facts)
      process.stdout.write((await decide()).problem.code + ', ')`,
    output: 'in_flight',
  },
  {
    name: 'a claim that is not answered',
    body: "store.begin = hang; process.stdout.write((await decide()).problem.code + ', ')",
    output: 'store_unavailable',
  },
  {
    name: 'a completion that is not answered',
    body: "const { run } = await decide(); store.complete = hang; process.stdout.write((await run.settle(answer)).action + ', ')",
    output: 'send',
  },
  {
    name: 'a release that is not answered',
    body: "const { run } = await decide(); store.release = hang; process.stdout.write((await run.fail()).action + ', ')",
    output: 'send',
  },
  {
    name: 'idle, while a completion is pending',
    body: `const { run } = await decide()
      let times = 0
      store.complete = async (...args) => {
        if (++times < 3) throw new Error('down')
        process.stdout.write('completed, ')
        return inner.complete(...args)
      }
      await run.settle(answer)
      await engine.idle()`,
    output: 'completed',
  },
  {
    name: 'idle, while a claim that was given up is pending',
    body: `let times = 0
      store.begin = () => Promise.reject(new Error('down'))
      store.release = async (...args) => {
        if (++times < 3) throw new Error('down')
        process.stdout.write('released, ')
        return inner.release(...args)
      }
      await decide()
      await engine.idle()`,
    output: 'released',
  },
  {
    name: "an operator's command",
    body: `store.inspect = hang
      await engine.inspect({ scope: 'acme', key: 'a' }).catch((error) => process.stdout.write(error.code + ', '))`,
    output: 'store_failed',
  },
])('$name keeps the process alive until the caller was answered', async ({ body, output }) => {
  expect(await exitOf(body, SHORT)).toBe(`${output}, reached 0`)
})
