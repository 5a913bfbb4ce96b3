import { setTimeout as pause } from 'node:timers/promises'
import { createPool } from 'mysql2/promise'
import { MySqlStore } from 'once-per-key/mysql'
import { PostgresStore } from 'once-per-key/postgres'
import { Pool } from 'pg'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { startMariaDb } from '../../support/mariadb-server.js'
import { startPgBouncer } from '../../support/pgbouncer.js'
import { startPostgres } from '../../support/postgres-server.js'
import { thoroughly } from '../../support/thoroughness.js'
import { buildPayingService, type PayingService, type ServiceSettings, startPayingService } from './paying-services.js'

// Services are killed in their work, and so is the server; connections are killed and cut, replies lost. Whatever happens, a key has its
// effect once.
vi.setConfig({ testTimeout: 1_800_000, hookTimeout: 60_000 })

/** ONCE_PER_KEY_CHAOS=5000: so many keys for each way. */
const KEYS = Number(process.env.ONCE_PER_KEY_CHAOS ?? thoroughly('150', '600'))
const SERVICES = 3
const CLIENTS = 24
/** For a service to come to its work: none does while the server is away. */
const MOST_WAITED_MS = 3_000

/** A server that crashes, and where its clients reach it. */
interface ChaosDialect {
  readonly dialect: ServiceSettings['dialect']
  /** Of the server, or of what is in front of it. */
  readonly port: number
  url(database: string): string
  createDatabase(name: string): Promise<unknown>
  run(sql: string, database?: string): Promise<Record<string, unknown>[]>
  restart(): Promise<unknown>
  killConnections(): Promise<unknown>
  migrate(url: string): Promise<void>
  close(): Promise<unknown>
}

const EFFECTS = 'CREATE TABLE effects (n SERIAL PRIMARY KEY, name VARCHAR(64), id VARCHAR(128))'

async function onMariaDb(): Promise<ChaosDialect> {
  const server = await startMariaDb()
  return {
    ...server,
    dialect: 'mysql',
    async killConnections() {
      const rows = await server.run(
        "SELECT id FROM information_schema.processlist WHERE user = 'root' AND db IS NOT NULL",
      )
      for (const { id } of rows.slice(0, 6)) await server.run(`KILL CONNECTION ${id}`).catch(() => {})
    },
    async migrate(uri) {
      const pool = createPool({ uri, connectionLimit: 1 })
      await new MySqlStore({ pool }).migrate()
      await pool.end()
    },
  }
}

async function onPostgres(): Promise<ChaosDialect> {
  const server = await startPostgres()
  return {
    ...server,
    dialect: 'postgres',
    killConnections: () =>
      server.run(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname <> 'postgres' LIMIT 6`,
      ),
    async migrate(connectionString) {
      const pool = new Pool({ connectionString, max: 1 })
      await new PostgresStore({ pool }).migrate()
      await pool.end()
    },
  }
}

async function behindPgBouncer(): Promise<ChaosDialect> {
  const postgres = await onPostgres()
  const bouncer = await startPgBouncer(postgres.port, 16)
  const close = async () => {
    await bouncer.close()
    await postgres.close()
  }
  return { ...postgres, port: bouncer.port, url: bouncer.url, close }
}

const program = await buildPayingService()
const services: PayingService[] = []
afterAll(async () => {
  await endServices()
  await program.remove()
})

async function endServices(): Promise<void> {
  await Promise.all(services.splice(0).map((service) => service.close()))
}

/** One fault after the other, while there is work. Resolves with how many of each there were. */
async function disturb(server: ChaosDialect, isOver: () => boolean): Promise<Record<string, number>> {
  const done: Record<string, number> = {}
  const faults: Record<string, (service: PayingService) => unknown> = {
    'reply to COMMIT lost': ({ proxy }) => void proxy.dropReplyTo('COMMIT'),
    'COMMIT lost': ({ proxy }) => void proxy.dropRequest('COMMIT'),
    'reply to INSERT lost': ({ proxy }) => void proxy.dropReplyTo('INSERT'),
    'statement torn': ({ proxy }) => void proxy.tearRequest('UPDATE'),
    'connections reset': ({ proxy }) => proxy.reset(),
    'connections killed': () => server.killConnections(),
    'service cut off': async ({ proxy }) => {
      proxy.freeze()
      await pause(700)
      proxy.heal()
    },
    'service killed in its work': (service) => service.killInWork(MOST_WAITED_MS),
    'server crashed': async () => server.restart(),
  }
  for (let turn = 0; !isOver(); turn++) {
    const names = Object.keys(faults)
    const name = names[turn % names.length] as string
    const hasStruck = await faults[name]?.(services[turn % services.length] as PayingService)
    if (hasStruck !== false) done[name] = (done[name] ?? 0) + 1
    await pause(name === 'server crashed' ? 1_500 : 150)
  }
  return done
}

describe.each([
  ['MariaDB', onMariaDb],
  ['Postgres', onPostgres],
  ['Postgres behind PgBouncer', behindPgBouncer],
] as const)('under faults, on %s', async (_name, open) => {
  const server = await open()
  afterAll(async () => {
    await endServices()
    await server.close()
  })

  test.each([
    ['the leased way', 'assumed'],
    ['one transaction and no claim', 'in-transaction'],
  ] as const)(`%s: ${KEYS} keys have one effect each, and one answer`, async (_way, effects) => {
    const database = effects === 'assumed' ? 'leased' : 'unclaimed'
    await server.createDatabase(database)
    await server.run(EFFECTS, database)
    await server.migrate(server.url(database))
    const settings = { dialect: server.dialect, uri: server.url(database), effects }
    const start = () => startPayingService(program.file, server.port, settings)
    services.push(...(await Promise.all(Array.from({ length: SERVICES }, start))))
    const answers = new Map<string, string>()
    let next = 0
    let tries = 0

    async function client(number: number): Promise<void> {
      for (let n = next++; n < KEYS; n = next++) {
        const key = `key-${n}`
        for (let turn = number; answers.get(key) === undefined; turn++) {
          tries++
          const service = services[turn % SERVICES] as PayingService
          // A client that is impatient asks another service at the same time.
          const both = turn % 5 === 0 ? [service, services[(turn + 1) % SERVICES] as PayingService] : [service]
          const told = await Promise.allSettled(both.map(({ pay }) => pay(key)))
          for (const each of told) {
            if (each.status !== 'fulfilled') continue
            expect(answers.get(key) ?? each.value, key).toBe(each.value)
            answers.set(key, each.value)
          }
          if (answers.get(key) === undefined) await pause(30 + Math.random() * 100)
        }
      }
    }

    let isOver = false
    const disturbed = disturb(server, () => isOver)
    await Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(i)))
    isOver = true
    const faults = await disturbed
    for (const { proxy } of services) {
      proxy.disarm()
      proxy.heal()
    }

    // Behind the faults every answer is still the one that was given, and every key has one effect.
    for (const [key, answer] of answers) {
      await vi.waitFor(async () => expect(await (services[0] as PayingService).pay(key)).toBe(answer), 20_000)
    }
    const rows = await server.run('SELECT name, id FROM effects', database)
    expect(Object.fromEntries(rows.map(({ name, id }) => [name, id]))).toEqual(Object.fromEntries(answers))
    expect(rows).toHaveLength(KEYS)
    // A run that tried nothing shows nothing.
    expect(tries).toBeGreaterThan(KEYS)
    expect(Object.keys(faults).length).toBeGreaterThanOrEqual(thoroughly(4, 9))
    await endServices()
  })
})
