import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { newMariaDbDatabase } from '../../../test/support/mariadb-server.js'
import { installNode } from '../../../test/support/node-binary.mjs'
import { newDatabase } from '../../../test/support/postgres-server.js'
import { startRedis } from '../../../test/support/redis-server.js'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

// A tracer changes the packages of its process as they are loaded, so each has a process of its own, which serves every binding on every
// store: the program in `integrations/tracers/program`.

const run = promisify(execFile)
const FOLDER = fileURLToPath(new URL('../../tracers/', import.meta.url))
const STORES = ['pg', 'mysql2', 'sqlite', 'ioredis 6', 'ioredis 5', 'node-redis 6', 'node-redis 5']
const WITH_TRANSACTIONS = ['pg', 'mysql2', 'sqlite']
const BINDINGS = ['Express 5', 'Express 4', 'Fastify', 'Koa', 'Hono']

interface Tracer {
  readonly env?: Readonly<Record<string, string>>
  /** The oldest Node that it runs on. */
  readonly node?: number
  /** Whose methods it changes, of those that the program shows. */
  readonly changes: readonly ('pg' | 'mysql2' | 'express')[]
}

/** What tracers send, they send to a port where nobody listens. */
const DATADOG = {
  DD_TRACE_AGENT_URL: 'http://127.0.0.1:9',
  DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false',
  DD_DBM_PROPAGATION_MODE: 'full',
}
const NEW_RELIC = {
  NEW_RELIC_APP_NAME: 'payouts',
  NEW_RELIC_LICENSE_KEY: '0'.repeat(40),
  NEW_RELIC_HOST: '127.0.0.1',
  NEW_RELIC_PORT: '9',
  NEW_RELIC_LOG_ENABLED: 'false',
  NEW_RELIC_NO_CONFIG_FILE: 'true',
}

const TRACERS: Readonly<Record<string, Tracer>> = {
  'dd-trace-5': { env: DATADOG, changes: ['pg', 'mysql2', 'express'] },
  'dd-trace-6': { env: DATADOG, node: 22, changes: ['pg', 'mysql2', 'express'] },
  opentelemetry: { changes: ['pg', 'mysql2', 'express'] },
  sentry: { changes: ['pg'] },
  'new-relic': { env: NEW_RELIC, changes: ['pg', 'mysql2'] },
  elastic: { changes: ['pg', 'mysql2'] },
}

/** What each store and binding answers. */
const PLAYED = {
  'a request and its replay': ['201 run-1', '201 run-1 replayed'],
  'a request while it runs': ['409', '201 run'],
  'a step': ['503 busy', '201 charge-1', '201 charge-1 replayed', '1 charges'],
}
const PAID = ['201 paid', '201 paid replayed', 1]
const IN_TRANSACTIONS = {
  'a transaction': PAID,
  'one transaction without a claim': PAID,
  'a transaction that fails first': ['500', 0, '201 run-2', '201 run-2 replayed', 1],
}

const redis = await startRedis('--appendonly', 'no')
afterAll(() => redis.close())
let untraced: Promise<Served> | undefined

describe.each(Object.entries(TRACERS))('%s', (name, tracer) => {
  let served: Promise<Served> | undefined
  const serve = () => {
    served ??= serveWith(tracer, '--require', join(FOLDER, 'start', `${name}.cjs`))
    return served
  }

  test('traces what it is known to trace', async () => {
    untraced ??= serveWith({ changes: [] })
    const [{ methods }, { methods: plain }] = [await serve(), await untraced]
    for (const each of tracer.changes) expect(methods[each], each).not.toBe(plain[each])
  })

  test.each(STORES)('changes nothing of what clients are answered on %s', async (store) => {
    const { told } = await serve()
    const expected = WITH_TRANSACTIONS.includes(store) ? { ...PLAYED, ...IN_TRANSACTIONS } : PLAYED
    expect(told[store]).toEqual(Object.fromEntries(BINDINGS.map((binding) => [binding, expected])))
  })
})

interface Served {
  /** By store, and by binding. */
  readonly told: Readonly<Record<string, unknown>>
  readonly methods: Readonly<Record<string, string>>
}

async function serveWith({ env = {}, node }: Tracer, ...args: readonly string[]): Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-tracer-'))
  const [postgres, mariadb] = await Promise.all([newDatabase(), newMariaDbDatabase()])
  const urls = { POSTGRES_URL: postgres.url, MYSQL_URL: mariadb.url, REDIS_URL: redis.url, FOLDER: folder }
  const options = { env: { PATH: process.env.PATH, ...env, ...urls }, maxBuffer: 10_000_000 }
  try {
    const { stdout } = await run(programOf(node), [...args, join(FOLDER, 'program/main.cjs')], options)
    return JSON.parse(stdout.slice(stdout.lastIndexOf('\n'))) as Served
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** This Node, or a newer one where a tracer needs it. */
function programOf(oldest = 0): string {
  if (Number(process.versions.node.split('.')[0]) >= oldest) return process.execPath
  const program = installNode(24)
  if (program === undefined)
    throw new Error('A Node that the tracer runs on could not be installed, so it was not tried.')
  return program
}
