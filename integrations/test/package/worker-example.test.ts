import { type ChildProcess, spawn } from 'node:child_process'
import { once as event } from 'node:events'
import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Queue } from 'bullmq'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ROOT } from '../../../test/support/packed-package.js'
import { startRedis } from '../../../test/support/redis-server.js'
import { pastedProject } from '../support/pasted-project.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const EXAMPLE = 'examples/worker'
let pasted: Awaited<ReturnType<typeof pastedProject>>
let redis: Awaited<ReturnType<typeof startRedis>>

beforeAll(async () => {
  ;[pasted, redis] = await Promise.all([pastedProject(), startRedis()])
  await cp(join(ROOT, EXAMPLE), join(pasted.folder, 'example'), { recursive: true })
})
afterAll(() => Promise.all([pasted?.remove(), redis?.close()]))

/** The example as it is started, and what it prints. */
function started() {
  const env = { PATH: process.env.PATH, REDIS_URL: redis.url }
  const child: ChildProcess = spawn(process.execPath, [join(pasted.folder, 'example/worker.mjs')], { env })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes) => (said += bytes))
  onTestFinished(() => void child.kill('SIGKILL'))
  const jobs = () => [...said.matchAll(/^job (\d+): (po_\S+)$/gm)].map(([, , id]) => id)
  return {
    child,
    said: () => said,
    jobs,
    untilJobs: (count: number) => vi.waitUntil(() => jobs().length >= count, 20_000),
  }
}

describe('the example of a worker on a BullMQ queue, with the packed package', () => {
  test('pays once for a payout that is in the queue twice, in one process or in the next, and stops when it is told to', async () => {
    const first = started()
    await first.untilJobs(2)
    first.child.kill('SIGTERM')
    expect(await event(first.child, 'exit')).toEqual([0, null])
    expect(first.said().match(/^paying 5000$/gm)).toHaveLength(1)
    expect(new Set(first.jobs()).size).toBe(1)

    const second = started()
    await second.untilJobs(2)
    expect(second.said()).not.toContain('paying')
    expect(second.jobs()).toEqual(first.jobs())
  })

  test('fails a job for good whose order was another payout', async () => {
    const worker = started()
    await worker.untilJobs(2)
    const queue = new Queue('payouts', { connection: { host: '127.0.0.1', port: redis.port } })
    onTestFinished(() => queue.close())
    await queue.add('payout', { merchant: 'acme', order: 'order-1001', amount: 9_900 }, { attempts: 5 })
    await vi.waitUntil(() => worker.said().includes('failed'), 20_000)
    expect(worker.said()).toMatch(/^job \d+ failed: The key was used with another input:/m)
    expect(worker.said()).not.toContain('paying 9900')
  })

  test('is started by one command, and needs what it says', async () => {
    const { scripts, dependencies } = JSON.parse(await readFile(join(ROOT, EXAMPLE, 'package.json'), 'utf8'))
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    const { devDependencies } = JSON.parse(await readFile(join(ROOT, 'integrations/package.json'), 'utf8'))
    expect(scripts.start).toBe('node worker.mjs')
    expect(dependencies['once-per-key']).toBe(`^${version}`)
    for (const name of ['bullmq', 'ioredis']) expect(dependencies[name], name).toBe(devDependencies[name])
  })
})
