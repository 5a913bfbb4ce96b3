import { IsolationLevel } from '@mikro-orm/mysql'
import { sql } from 'drizzle-orm'
import { CompiledQuery } from 'kysely'
import type { IdempotencyContext } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { Transaction } from 'sequelize'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { openStore } from '../../../test/adapters/mysql/open-store.js'
import { startFaultProxy } from '../../../test/support/fault-proxy.js'
import { serve } from '../postgres-clients/handler-on-trial.js'
import { loadRecipe } from '../support/prisma-project.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 300_000 })

interface Client {
  readonly store: Store & {
    // biome-ignore lint/suspicious/noExplicitAny: each client has a `tx` of its own
    transaction(context: IdempotencyContext, work: (tx: any) => unknown, options?: any): Promise<unknown>
  }
  // biome-ignore lint/suspicious/noExplicitAny: each client has a `tx` of its own
  query(tx: any, text: string): Promise<unknown>
  readonly serializable: unknown
  /** As the client writes it. */
  readonly commit: string
  close(): Promise<unknown>
}

const CLIENTS: readonly (readonly [name: string, open: () => Promise<Client>])[] = [
  [
    'Knex',
    async () => {
      const { store, db, pool } = await import('../../recipes/transactions/mysql-knex.js')
      const close = () => Promise.all([db.destroy(), pool.end()])
      return {
        store,
        query: async (tx, text) => tx.raw(text),
        serializable: { isolationLevel: 'serializable' },
        commit: 'COMMIT',
        close,
      }
    },
  ],
  [
    'Drizzle',
    async () => {
      const { store, application, pool } = await import('../../recipes/transactions/mysql-drizzle.js')
      const close = () => Promise.all([application.end(), pool.end()])
      const serializable = { isolationLevel: 'serializable' }
      return { store, query: (tx, text) => tx.execute(sql.raw(text)), serializable, commit: 'commit', close }
    },
  ],
  [
    'Kysely',
    async () => {
      const { store, db, pool } = await import('../../recipes/transactions/mysql-kysely.js')
      const close = () => Promise.all([db.destroy(), pool.end()])
      const query: Client['query'] = (tx, text) => tx.executeQuery(CompiledQuery.raw(text))
      return { store, query, serializable: 'serializable', commit: 'commit', close }
    },
  ],
  [
    'Sequelize',
    async () => {
      const { store, sequelize, pool } = await import('../../recipes/transactions/mysql-sequelize.js')
      const close = () => Promise.all([sequelize.close(), pool.end()])
      const query: Client['query'] = (transaction, text) => sequelize.query(text, { transaction })
      const serializable = { isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE }
      return { store, query, serializable, commit: 'COMMIT', close }
    },
  ],
  [
    'TypeORM',
    async () => {
      const { store, dataSource, pool } = await import('../../recipes/transactions/mysql-typeorm.js')
      const close = () => Promise.all([dataSource.destroy(), pool.end()])
      return { store, query: (tx, text) => tx.query(text), serializable: 'SERIALIZABLE', commit: 'COMMIT', close }
    },
  ],
  [
    'MikroORM',
    async () => {
      const { store, orm, pool } = await import('../../recipes/transactions/mysql-mikro-orm.js')
      const close = () => Promise.all([orm.close(), pool.end()])
      const serializable = { isolationLevel: IsolationLevel.SERIALIZABLE }
      return { store, query: (em, text) => em.execute(text), serializable, commit: 'COMMIT', close }
    },
  ],
  [
    'Prisma',
    async () => {
      // biome-ignore lint/suspicious/noExplicitAny: its types are generated
      const { store, prisma, pool } = await loadRecipe<any>('mysql')
      const close = () => Promise.all([prisma.$disconnect(), pool.end()])
      const serializable = { isolationLevel: 'Serializable' }
      return { store, query: (tx, text) => tx.$executeRawUnsafe(text), serializable, commit: 'COMMIT', close }
    },
  ],
]

const { server, url, store: observer, query } = await openStore()
await query('CREATE TABLE effects (id VARCHAR(64) PRIMARY KEY)')
/** All that the clients send goes through it. */
const proxy = await startFaultProxy(server.port)
afterAll(() => proxy.close())
beforeEach(async () => {
  await query('DELETE FROM once_per_key_records')
  await query('DELETE FROM effects')
})

const INSERT = "INSERT INTO effects VALUES ('e1')"
const SENT = { status: 201, body: { id: 'e1' } }
const FAST = { leaseMs: 4_000, maxRunMs: 6_000, storeTimeoutMs: 1_000 }
const effects = async () => (await query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id)
const record = () => observer.inspect('single-tenant:k')

describe.each(CLIENTS)('with %s', (_name, open) => {
  let client: Client

  beforeAll(async () => {
    vi.stubEnv('DATABASE_URL', url.replace(`:${server.port}`, `:${proxy.port}`))
    client = await open()
  })
  afterAll(() => client?.close())

  const paying =
    (options?: unknown) => (res: Parameters<Parameters<typeof serve>[1]>[0], context: IdempotencyContext) =>
      client.store.transaction(
        context,
        async (tx) => {
          await client.query(tx, INSERT)
          res.status(201).json({ id: 'e1' })
        },
        options,
      )

  test('effects and record are committed together, and a retry replays the answer', async () => {
    const { post, errors } = await serve(client.store, paying())
    expect(await post()).toMatchObject({ ...SENT, replayed: null })
    expect(await post()).toMatchObject({ ...SENT, replayed: 'true' })
    expect([errors, await effects()]).toEqual([[], ['e1']])
  })

  test('an isolation level is the client’s own option', async () => {
    const { post } = await serve(client.store, paying(client.serializable))
    expect(await post()).toMatchObject(SENT)
  })

  test('one transaction and no claim leaves one completed record', async () => {
    const { post, errors } = await serve(client.store, paying(), { effects: 'in-transaction' })
    expect(await post()).toMatchObject({ ...SENT, replayed: null })
    expect(await post()).toMatchObject({ ...SENT, replayed: 'true' })
    expect([errors, await effects()]).toEqual([[], ['e1']])
  })

  test('a throw leaves nothing, and a retry may run', async () => {
    const { post } = await serve(client.store, async (res, context) => {
      await client.store.transaction(context, async (tx) => {
        await client.query(tx, INSERT)
        if (context.attempt === 1) throw new Error('no')
        res.status(201).json({ id: 'e1' })
      })
    })
    expect((await post()).status).toBe(500)
    expect(await effects()).toEqual([])
    expect(await post()).toMatchObject(SENT)
  })

  test('writes that went over another connection are found, and a lost owner does not commit', async () => {
    let turn = 0
    const { post, errors } = await serve(client.store, async (res, context) => {
      turn++
      await client.store.transaction(context, async (tx) => {
        if (turn === 1) await query(INSERT)
        else {
          await client.query(tx, "INSERT INTO effects VALUES ('e2')")
          await query('DELETE FROM once_per_key_records')
        }
        res.status(201).json({ id: 'e1' })
      })
    })
    expect((await post()).status).toBe(500)
    expect((await post()).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'nothing_written' }, { code: 'record_absent' }])
    expect(await effects()).toEqual(['e1'])
  })

  test('DDL in the work is found', async () => {
    const { post, errors } = await serve(client.store, async (res, context) => {
      await client.store.transaction(context, async (tx) => {
        await client.query(tx, INSERT)
        await client.query(tx, 'CREATE TABLE IF NOT EXISTS other (id INT)')
        res.status(201).json({ id: 'e1' })
      })
    })
    expect((await post()).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'transaction_unmarked' }])
  })

  test.each([
    ['was carried out', 'dropReplyTo', 201],
    ['never arrived', 'dropRequest', 500],
  ] as const)('a COMMIT without a reply that %s is found out', async (_what, lose, status) => {
    let loses = true
    const { post } = await serve(
      client.store,
      async (res, context) => {
        await client.store.transaction(context, async (tx) => {
          await client.query(tx, INSERT)
          res.status(201).json({ id: 'e1' })
          if (loses) void proxy[lose](client.commit)
          loses = false
        })
      },
      FAST,
    )
    expect((await post()).status).toBe(status)
    expect(await effects()).toEqual(status === 201 ? ['e1'] : [])
    expect(await post()).toMatchObject(SENT)
    expect(await record()).toMatchObject({ state: 'completed' })
  })
})
