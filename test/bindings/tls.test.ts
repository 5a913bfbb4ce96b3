import { randomUUID } from 'node:crypto'
import { once as emitted } from 'node:events'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import tls from 'node:tls'
import { Redis } from 'ioredis'
import { idempotency } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { BINDINGS, jsonBody, type Step } from '../support/bindings.js'
import { newCertificate } from '../support/certificate.js'
import { gate } from '../support/gate.js'
import { startPostgres } from '../support/postgres-server.js'
import { type Connection, connectTo } from '../support/raw-client.js'
import { freePort, startRedis } from '../support/redis-server.js'

const certificate = newCertificate()
const { cert, key, certFile, keyFile } = certificate
const secure = { host: '127.0.0.1', ca: cert }
afterAll(certificate.remove)

interface Opened {
  readonly store: Store
  close(): Promise<unknown>
}

const OPENERS: Readonly<Record<string, () => Promise<Opened>>> = {
  async ioredis() {
    const port = await freePort()
    const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile]
    const server = await startRedis('--tls-port', `${port}`, ...files, '--tls-auth-clients', 'no')
    const client = new Redis(port, '127.0.0.1', { tls: secure })
    return {
      store: new RedisStore({ client }),
      close: async () => {
        client.disconnect()
        await server.close()
      },
    }
  },
  async pg() {
    const server = await startPostgres({ ssl: 'on', ssl_cert_file: certFile, ssl_key_file: keyFile })
    const pool = new Pool({ connectionString: server.url(), ssl: secure })
    const store = new PostgresStore({ pool, sweeps: false })
    await store.migrate()
    const { rows } = await pool.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')
    expect(rows).toEqual([{ ssl: true }])
    return {
      store,
      close: async () => {
        await pool.end()
        await server.close()
      },
    }
  },
}

describe.each(Object.entries(OPENERS))('over TLS, with a store over TLS by %s', (_name, open) => {
  let opened: Opened
  beforeAll(async () => {
    opened = await open()
  })
  afterAll(() => opened.close())

  async function serve(binding: (typeof BINDINGS)[number], handler: Step) {
    const scope = randomUUID()
    // On a busy machine a claim must not be given up, since its handler would not run.
    const once = idempotency({ store: opened.store, scope: () => scope, leaseMs: 60_000, storeTimeoutMs: 10_000 })
    const server = https.createServer({ cert, key }, binding.listener([jsonBody, once as Step, handler]))
    server.listen(0, '127.0.0.1')
    await emitted(server, 'listening')
    const { port } = server.address() as AddressInfo
    const clients: Connection[] = []
    onTestFinished(async () => {
      for (const { socket } of clients) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    })
    return {
      once,
      connect() {
        const client = connectTo(port, tls.connect({ port, ...secure }))
        clients.push(client)
        return client
      },
    }
  }

  test.each(BINDINGS)('$name: a response is held, its client leaves, and a retry replays it', async (binding) => {
    const written = gate()
    const goOn = gate()
    let runs = 0
    const { once, connect } = await serve(binding, async (_req, res) => {
      runs++
      res.setHeader('X-Payment', 'p1')
      res.write('pa')
      written.open()
      await goOn.opened
      res.end('id')
    })
    const [leaving, staying] = [connect(), connect()]
    leaving.send({ key: 'left', body: { amount: 1 } })
    await written.opened
    expect(leaving.received()).toHaveLength(0)
    leaving.socket.destroy()
    await leaving.closed
    goOn.open()
    await once.idle()

    staying.send({ key: 'left', body: { amount: 1 } })
    staying.send({ key: 'stayed', body: { amount: 1 } })
    const replies = [await staying.reply(), await staying.reply()]
    const seen = replies.map(({ status, header, body }) => [
      status,
      header('X-Payment'),
      header('Idempotent-Replayed'),
      `${body}`.slice(0, 4),
    ])
    expect(seen).toEqual([
      [200, 'p1', 'true', 'paid'],
      [200, 'p1', undefined, 'paid'],
    ])
    staying.send({ key: 'stayed', body: { amount: 2 } })
    expect((await staying.reply()).status).toBe(409)
    expect(runs).toBe(2)
  })
})
