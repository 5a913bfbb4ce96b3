import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { ROOT } from '../../../test/support/packed-package.js'
import { startPostgres } from '../../../test/support/postgres-server.js'
import { pastedProject, serveFile } from '../support/pasted-project.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const EXAMPLE = 'examples/express-postgres-drizzle'
let pasted: Awaited<ReturnType<typeof pastedProject>>
let database: Awaited<ReturnType<typeof startPostgres>>

beforeAll(async () => {
  ;[pasted, database] = await Promise.all([pastedProject(), startPostgres()])
  await cp(join(ROOT, EXAMPLE), join(pasted.folder, 'example'), { recursive: true })
})
afterAll(() => Promise.all([pasted?.remove(), database?.close()]))

describe('the example with Express, Postgres and Drizzle, with the packed package', () => {
  test('writes one row for a request and its retry, which gets the first answer', async () => {
    const { port } = await serveFile(join(pasted.folder, 'example/server.mjs'), { DATABASE_URL: database.url() })
    const first = await post(port, '{"amount":5000}')
    const retry = await post(port, '{"amount":5000}')
    expect(first).toMatchObject({ status: 201, replayed: null, body: { amount: 5_000 } })
    expect(retry).toEqual({ ...first, replayed: 'true' })
    expect(await post(port, '{"amount":9900}')).toMatchObject({ status: 409, body: { code: 'mismatched' } })
    expect(await database.run('SELECT id, amount FROM payouts')).toEqual([first.body])
  })

  test('writes none where its transaction fails', async () => {
    const { port } = await serveFile(join(pasted.folder, 'example/server.mjs'), { DATABASE_URL: database.url() })
    const before = await database.run('SELECT count(*)::int AS count FROM payouts')
    expect((await post(port, '{"amount":null}', 'order-2')).status).toBe(500)
    expect(await database.run('SELECT count(*)::int AS count FROM payouts')).toEqual(before)
  })

  test('goes on where the database ends the session of a transaction', async () => {
    const { port } = await serveFile(join(pasted.folder, 'example/server.mjs'), { DATABASE_URL: database.url() })
    const holder = new Client({ connectionString: database.url() })
    await holder.connect()
    await holder.query('BEGIN; LOCK TABLE payouts')
    const interrupted = post(port, '{"amount":100}', 'order-3')
    const ended = () =>
      database.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    await vi.waitUntil(async () => (await ended()).length > 0, { timeout: 10_000 })
    expect((await interrupted).status).toBe(500)
    await holder.end()
    expect(await post(port, '{"amount":100}', 'order-3')).toMatchObject({ status: 201, body: { amount: 100 } })
  })

  test('is started by one command, and needs what it says', async () => {
    const { scripts, dependencies } = JSON.parse(await readFile(join(ROOT, EXAMPLE, 'package.json'), 'utf8'))
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    expect(scripts.start).toBe('node server.mjs')
    expect(dependencies['once-per-key']).toBe(`^${version}`)
  })
})

async function post(port: number, body: string, key = 'order-1') {
  const response = await fetch(`http://127.0.0.1:${port}/payouts`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
    body,
  })
  const text = await response.text()
  const json = response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text
  return { status: response.status, replayed: response.headers.get('idempotent-replayed'), body: json }
}
