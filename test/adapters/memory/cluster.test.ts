import { afterAll, beforeAll, expect, test } from 'vitest'
import { runNode } from '../../support/run-node.js'
import { type TranspiledPackage, transpiledPackage } from '../../support/transpiled-package.js'

let installed: TranspiledPackage

beforeAll(async () => {
  installed = await transpiledPackage()
})

afterAll(() => installed.remove())

test('two stores in a node:cluster worker warn once, and those of a process without a cluster do not', async () => {
  const script = await installed.write(
    'cluster.mjs',
    `import cluster from 'node:cluster'
    import { MemoryStore } from 'once-per-key/memory'
    const warnings = []
    process.on('warning', ({ name, code, message }) => warnings.push({ name, code, message }))
    new MemoryStore()
    new MemoryStore()
    setImmediate(() => {
      console.log(JSON.stringify({ worker: cluster.isWorker, warnings }))
      if (cluster.isPrimary) cluster.fork()
      else cluster.worker.disconnect()
    })`,
  )
  const { exitCode, stdout, stderr } = await runNode(script)
  expect(exitCode).toBe(0)
  const lines = stdout.trim().split('\n')
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { worker: false, warnings: [] },
    {
      worker: true,
      warnings: [
        {
          name: 'OncePerKeyWarning',
          code: 'ONCE_PER_KEY_MEMORY_STORE_IN_CLUSTER',
          message: expect.stringMatching(/each worker has its own records.*RedisStore/),
        },
      ],
    },
  ])
  expect(stderr.match(/OncePerKeyWarning/g)).toHaveLength(1)
}, 30_000)

test('two stores in a worker thread warn once, and those of the main thread do not', async () => {
  const script = await installed.write(
    'thread.mjs',
    `import { isMainThread, Worker } from 'node:worker_threads'
    import { fileURLToPath } from 'node:url'
    import { MemoryStore } from 'once-per-key/memory'
    const warnings = []
    process.on('warning', ({ name, code, message }) => warnings.push({ name, code, message }))
    new MemoryStore()
    new MemoryStore()
    setImmediate(() => {
      console.log(JSON.stringify({ worker: !isMainThread, warnings }))
      if (isMainThread) new Worker(fileURLToPath(import.meta.url))
    })`,
  )
  const { exitCode, stdout, stderr } = await runNode(script)
  expect(exitCode).toBe(0)
  const lines = stdout.trim().split('\n')
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { worker: false, warnings: [] },
    {
      worker: true,
      warnings: [
        {
          name: 'OncePerKeyWarning',
          code: 'ONCE_PER_KEY_MEMORY_STORE_IN_CLUSTER',
          message: expect.stringMatching(/worker thread.*each thread has its own records.*RedisStore/),
        },
      ],
    },
  ])
  expect(stderr.match(/OncePerKeyWarning/g)).toHaveLength(1)
}, 30_000)
