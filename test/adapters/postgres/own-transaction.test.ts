import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import {
  type IdempotencyContext,
  type IdempotencyEvent,
  type IdempotencyOptions,
  idempotency,
  singleTenant,
} from 'once-per-key'
import type { PoolTransactionOptions, Statement } from 'once-per-key/postgres'
import type { Pool, PoolClient } from 'pg'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startFaultProxy } from '../../support/fault-proxy.js'
import { gate } from '../../support/gate.js'
import { transactionByHand } from '../../support/transaction-by-hand.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { server: database, pool, query, url } = await openStore()
const application: Pool = openPool(url)
const store = storeOn({ pool, transactions: application })
await query('CREATE TABLE effects (id text PRIMARY KEY)')

type Handler = (req: Request, res: Response, context: IdempotencyContext) => Promise<unknown>

let server: Server | undefined
let events: IdempotencyEvent[]
let errors: unknown[]
let idle: () => Promise<void>

beforeEach(async () => {
  await query('TRUNCATE once_per_key.records, effects')
  events = []
  errors = []
})
afterEach(async () => {
  server?.closeAllConnections()
  server?.close()
  await idle()
})

const FAST: Partial<IdempotencyOptions> = { leaseMs: 2_000, maxRunMs: 3_000, storeTimeoutMs: 500 }

async function serve(handler: Handler, options: Partial<IdempotencyOptions> = {}): Promise<void> {
  const app: Express = express()
  const protect = idempotency({ store, scope: singleTenant, onEvent: (event) => events.push(event), ...options })
  idle = () => protect.idle()
  app.post('/payouts', express.json(), protect, (req, res, next) => {
    handler(req, res, req.idempotency as IdempotencyContext).catch(next)
  })
  app.use((error: { status?: number }, _req: Request, res: Response, next: NextFunction) => {
    errors.push(error)
    if (res.headersSent) return next(error)
    res.status(error.status ?? 500).json({ failed: true })
  })
  server = await new Promise<Server>((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening))
  })
}

async function post(
  key: string | null = 'k',
): Promise<{ status: number; body: unknown; replayed: string | null; extra: string | null }> {
  const { port } = (server as Server).address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}/payouts`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(key !== null && { 'Idempotency-Key': key }) },
    body: '{"amount":5}',
  })
  const text = await response.text()
  return {
    status: response.status,
    body: text.startsWith('{') ? JSON.parse(text) : text,
    replayed: response.headers.get('idempotent-replayed'),
    extra: response.headers.get('x-extra'),
  }
}

/** A store whose transactions wait for one connection. */
function onOneConnection() {
  const narrow = openPool(url, { max: 1 })
  onTestFinished(() => narrow.end())
  return { narrow, waiting: storeOn({ pool, transactions: narrow }) }
}

const insert = (tx: PoolClient, id = 'e1') => tx.query('INSERT INTO effects VALUES ($1)', [id])
const effects = async () => (await query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id)
const record = () => store.inspect('single-tenant:k')
const types = () => events.map(({ type }) => type)

describe('a transaction', () => {
  test('commits effects and record together, and the answer leaves behind its COMMIT', async () => {
    let seenInside: unknown
    await serve(async (_req, res, context) => {
      const value = await store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({ id: 'e1' })
        seenInside = (await record())?.state
        return 7
      })
      expect(value).toBe(7)
    })
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: null })
    expect(seenInside).toBe('in-flight')
    expect(await effects()).toEqual(['e1'])
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: 'true' })
    expect(types()).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('that throws leaves nothing behind: the response is as it was, and the error page is sent', async () => {
    await serve(async (_req, res, context) => {
      res.setHeader('X-Extra', 'kept')
      await store.transaction(context, async (tx) => {
        await insert(tx)
        res.setHeader('X-Extra', 'dropped')
        res.status(201).json({ id: 'e1' })
        throw Object.assign(new Error('no'), { status: 503 })
      })
    })
    expect(await post()).toEqual({ status: 503, body: { failed: true }, replayed: null, extra: 'kept' })
    expect(await effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('that was rolled back can be followed by another', async () => {
    await serve(async (_req, res, context) => {
      await store
        .transaction(context, async (tx) => {
          await insert(tx)
          res.status(200).json({ from: 1 })
          throw new Error('no')
        })
        .catch(() => {})
      expect([res.headersSent, res.writableEnded, res.statusCode]).toEqual([false, false, 200])
      await store.transaction(context, async (tx) => {
        await insert(tx, 'e2')
        res.status(201).json({ from: 2 })
      })
    })
    expect(await post()).toMatchObject({ status: 201, body: { from: 2 } })
    expect(await effects()).toEqual(['e2'])
    expect(await post()).toMatchObject({ status: 201, body: { from: 2 }, replayed: 'true' })
  })

  test('whose answer is a failure is rolled back, and the answer is sent', async () => {
    await serve(async (_req, res, context) => {
      const value = await store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(422).json({ declined: true })
        return 'declined'
      })
      expect(value).toBe('declined')
    })
    expect(await post()).toMatchObject({ status: 422, body: { declined: true } })
    expect(await effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: false })
    expect(errors).toEqual([])
  })

  test.each<NonNullable<IdempotencyOptions['effects']>>(['assumed', 'in-transaction'])(
    'whose answer is a failure, and whose client commits all the same, leaves the outcome unknown: %s',
    async (effectsFrom) => {
      const committing = storeOn({
        pool,
        transactions: {
          run: (tx: PoolClient, { text, values }) => tx.query(text, [...values]),
          // As Knex does where the work has called `trx.commit()`.
          transaction: async (work) => transactionByHand(await application.connect(), (tx) => work(tx).catch(() => {})),
        },
      })
      const handler: Handler = async (_req, res, context) => {
        await committing.transaction(context, async (tx) => {
          await insert(tx)
          res.status(402).json({ declined: true })
        })
      }
      await serve(handler, { store: committing, effects: effectsFrom })
      expect(await post()).toMatchObject({ status: 402, body: { declined: true } })
      expect(errors).toMatchObject([{ code: 'transaction_not_run' }])
      expect(await effects()).toEqual(['e1'])
      expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
    },
  )

  test('keeps the writes of a declined payment where isSuccess says so', async () => {
    await serve(
      async (_req, res, context) => {
        await store.transaction(context, async (tx) => {
          await insert(tx)
          res.status(422).json({ declined: true })
        })
      },
      { isSuccess: ({ status }) => status < 500 },
    )
    expect(await post()).toMatchObject({ status: 422, replayed: null })
    expect(await effects()).toEqual(['e1'])
    expect(await post()).toMatchObject({ status: 422, replayed: 'true' })
  })

  test('that throws behind the error page of a handler that did not wait for it ends with that page', async () => {
    const isOpen = gate()
    const hasFailed = gate()
    await serve(
      async (_req, res, context) => {
        const working = store.transaction(context, async (tx) => {
          await insert(tx)
          isOpen.open()
          await hasFailed.opened
          res.status(201).json({})
        })
        working.catch(() => {})
        await isOpen.opened
        throw new Error('the mail server is down')
      },
      { onEvent: (event) => events.push(event) },
    )
    const response = post()
    await vi.waitFor(() => expect(errors).toHaveLength(1))
    hasFailed.open()
    expect(await response).toMatchObject({ status: 500, body: { failed: true } })
    await idle()
    expect(await effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('over a client with members of its own that are named as the store names its own uses none of them', async () => {
    const called: string[] = []
    const client = {
      run: (tx: PoolClient, { text, values }: Statement) => tx.query(text, [...values]),
      transaction: async (work: (tx: PoolClient) => Promise<void>) =>
        transactionByHand(await application.connect(), work),
      runAll: async () => called.push('runAll'),
      sessionEnd: async () => called.push('sessionEnd'),
      commitsWithLast: true,
    }
    const onClient = storeOn({ pool, transactions: client })
    const handler: Handler = async (_req, res, context) => {
      await onClient.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({ paid: true })
      })
    }
    await serve(handler, { store: onClient })
    expect(await post()).toMatchObject({ status: 201, body: { paid: true } })
    expect(called).toEqual([])
    expect(await effects()).toEqual(['e1'])
    expect(await record()).toMatchObject({ state: 'completed' })
  })

  test('whose handler hangs up, and whose client retries it, ends', async () => {
    let calls = 0
    const retrying = storeOn({
      pool,
      transactions: {
        run: (tx: PoolClient, { text, values }) => tx.query(text, [...values]),
        async transaction(work) {
          for (let tries = 1; ; tries++) {
            const tx = await application.connect()
            try {
              await tx.query('BEGIN')
              await work(tx)
              return await tx.query('COMMIT')
            } catch (error) {
              await tx.query('ROLLBACK')
              if (tries === 2) throw error
            } finally {
              tx.release()
            }
          }
        },
      },
    })
    await serve(
      async (_req, res, context) => {
        await retrying.transaction(context, async (tx) => {
          await insert(tx)
          if (++calls === 1) {
            res.destroy()
            throw Object.assign(new Error('serialization'), { code: '40001' })
          }
          res.status(201).json({})
        })
      },
      { store: retrying },
    )
    await expect(post()).rejects.toThrow()
    await idle()
    expect(await effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('that its client tries again can lose its lease: the lock of the first try has ended', async () => {
    const retrying = storeOn({
      pool,
      transactions: {
        run: (tx: PoolClient, { text, values }) => tx.query(text, [...values]),
        async transaction(work) {
          const tx = await application.connect()
          try {
            for (const end of ['ROLLBACK', 'COMMIT']) {
              await tx.query('BEGIN ISOLATION LEVEL SERIALIZABLE') // Where no renewals are sent.
              await work(tx)
              await tx.query(end)
            }
          } finally {
            tx.release()
          }
        },
      },
    })
    const reasons: unknown[] = []
    await serve(
      async (_req, res, context) => {
        let calls = 0
        await retrying.transaction(context, async (tx) => {
          await insert(tx)
          await tx.query('SET LOCAL idle_in_transaction_session_timeout = 0')
          if (++calls === 2) await once(context.signal, 'abort')
          reasons.push(context.signal.reason?.code)
          res.status(201).json({})
        })
      },
      { ...FAST, maxRunMs: 20_000, store: retrying },
    )
    expect(await post()).toMatchObject({ status: 201 })
    expect(reasons).toEqual([undefined, 'lease_lost'])
    expect(await effects()).toHaveLength(1)
  })

  test.each<[string, (res: Response) => Promise<unknown>]>([
    ["'finish'", (res) => once(res.status(201).end('x'), 'finish')],
    ["the callback of 'end'", (res) => new Promise<void>((resolve) => void res.status(201).end('x', resolve))],
    ['a pipeline', (res) => pipeline(Readable.from(['a,b']), res.status(201))],
  ])('that waits inside for %s is misuse when its session ends, and holds no connection', async (_title, answer) => {
    const { narrow, waiting } = onOneConnection()
    await serve(
      async (_req, res, context) => {
        await waiting.transaction(context, async (tx) => {
          await insert(tx)
          await answer(res)
        })
      },
      { ...FAST, store: waiting },
    )
    expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
    expect(errors).toMatchObject([{ code: 'transaction_waiting' }])
    await idle()
    expect(await effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
    await vi.waitFor(() => expect(narrow.totalCount).toBe(0))
  })

  test('is told by its signal when a time limit has answered in its place', async () => {
    const isOpen = gate()
    await serve(async (_req, res, context) => {
      const working = store.transaction(context, async (tx) => {
        await insert(tx)
        isOpen.open()
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
        throw context.signal.reason
      })
      await isOpen.opened
      res.status(503).json({ late: true })
      await working
    })
    expect(await post()).toMatchObject({ status: 503, body: { late: true } })
    await idle()
    expect(errors).toMatchObject([{ code: 'run_failed' }])
    expect(await effects()).toEqual([])
  })

  test('without an answer is misuse, which names the line to move', async () => {
    await serve(async (_req, res, context) => {
      await store.transaction(context, (tx) => insert(tx))
      res.status(201).json({})
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([
      { code: 'transaction_unanswered', message: expect.stringContaining('Move the line') },
    ])
    expect(await effects()).toEqual([])
  })

  test.each<[string, (res: Response) => unknown]>([
    ['that is flushed', (res) => res.flushHeaders()],
    ['that is an event stream', (res) => res.type('text/event-stream').write('data: 1\n\n')],
    ['that is written in pieces, beyond what is kept', (res) => res.write('x'.repeat(2_000))],
  ])('with an answer %s is misuse', async (_title, answer) => {
    await serve(
      async (_req, res, context) => {
        await store.transaction(context, async (tx) => {
          await insert(tx)
          answer(res)
          res.end('x')
        })
      },
      { maxAnswerBytes: 1_000 },
    )
    expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
    expect(errors).toMatchObject([{ code: 'transaction_streamed' }])
    expect(await effects()).toEqual([])
  })

  test('with a whole answer that is too large to keep completes without it', async () => {
    await serve(
      async (_req, res, context) => {
        await store.transaction(context, async (tx) => {
          await insert(tx)
          res.status(200).send('x'.repeat(2_000))
        })
      },
      { maxAnswerBytes: 1_000 },
    )
    expect(await post()).toMatchObject({ status: 200, body: 'x'.repeat(2_000) })
    expect(await post()).toMatchObject({ status: 409, body: { code: 'answer_not_kept' } })
  })

  test('whose SQL fails, is caught, and is then answered is rolled back', async () => {
    await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        await insert(tx).catch(() => {})
        res.status(201).json({})
      })
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(await effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed' })
  })

  test('that a deferred constraint undoes at COMMIT is rolled back', async () => {
    await query('CREATE TABLE IF NOT EXISTS once (id text UNIQUE DEFERRABLE INITIALLY DEFERRED)')
    await query('TRUNCATE once')
    await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        await tx.query("INSERT INTO once VALUES ('x'), ('x')")
        res.status(201).json({})
      })
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ code: '23505' }])
    expect(await effects()).toEqual([])
  })

  test.each<[string, (tx: PoolClient) => Promise<unknown>]>([
    ['its writes go over the pool', () => query("INSERT INTO effects VALUES ('elsewhere')")],
    ['its update matches no row', (tx) => tx.query("UPDATE effects SET id = 'e2' WHERE id = 'e1'")],
    ['it only reads', (tx) => tx.query('SELECT count(*) FROM effects')],
    ['it sets what ends with it', (tx) => tx.query("SET LOCAL lock_timeout = '1s'")],
  ])('in which nothing is written is rolled back where %s', async (_why, work) => {
    await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await work(tx)
        res.status(201).json({})
      })
    })
    expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
    expect(errors).toMatchObject([
      { code: 'nothing_written', message: expect.stringMatching(/`tx`.*allowEmpty: true/) },
    ])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('in which nothing is written commits where that is allowed, at the isolation level that it was given', async () => {
    let level: unknown
    await serve(async (_req, res, context) => {
      await store.transaction(
        context,
        async (tx) => {
          level = (await tx.query('SHOW transaction_isolation')).rows[0].transaction_isolation
          res.status(201).json({ id: null })
        },
        { isolation: 'serializable', allowEmpty: true },
      )
    })
    expect(await post()).toMatchObject({ status: 201 })
    expect(level).toBe('serializable')
    expect(await post()).toMatchObject({ status: 201, replayed: 'true' })
  })

  test.each<[string, unknown]>([
    ['a level in capitals', { isolation: 'SERIALIZABLE' }],
    ['the name that other clients have for it', { isolationLevel: 'serializable' }],
    ['a level in place of options', 'serializable'],
  ])('does not begin at another isolation level than it was given: %s', async (_what, options) => {
    await serve(async (_req, res, context) => {
      const work = async (tx: PoolClient) => {
        await insert(tx)
        res.status(201).json({})
      }
      await store.transaction(context, work, options as PoolTransactionOptions)
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ code: 'options_invalid', message: expect.stringContaining('isolation') }])
    expect(await effects()).toEqual([])
  })

  test('of a stale owner is not committed', async () => {
    await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        await query("UPDATE once_per_key.records SET token = 'other', attempt = attempt + 1")
        res.status(201).json({})
      })
    })
    expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' } })
    expect(errors).toMatchObject([{ code: 'record_taken' }])
    expect(await effects()).toEqual([])
  })

  test.each<NonNullable<PoolTransactionOptions['isolation']>>(['repeatable read', 'serializable'])(
    'at %s outlives a third of its lease without a renewal',
    async (isolation) => {
      await serve(async (_req, res, context) => {
        await store.transaction(
          context,
          async (tx) => {
            await insert(tx)
            await new Promise((resolve) => setTimeout(resolve, 1_200))
            res.status(201).json({})
          },
          { isolation },
        )
      }, FAST)
      expect(await post()).toMatchObject({ status: 201 })
      expect(await effects()).toEqual(['e1'])
    },
  )

  test('at READ COMMITTED has its lease renewed', async () => {
    await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        // A session that does nothing for as long as a lease is ended.
        for (let i = 0; i < 3; i++) await tx.query('SELECT pg_sleep(0.9)')
        expect(context.signal.aborted).toBe(false)
        res.status(201).json({})
      })
    }, FAST)
    expect(await post()).toMatchObject({ status: 201 })
    expect(types()).toEqual(['claimed', 'completed'])
  })

  test('that waits for a connection keeps its lease', async () => {
    const { narrow, waiting } = onOneConnection()
    await serve(
      async (_req, res, context) => {
        await waiting.transaction(context, async (tx) => {
          await insert(tx)
          res.status(201).json({})
        })
      },
      { ...FAST, store: waiting },
    )
    const held = await narrow.connect()
    const response = post()
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    held.release()
    expect(await response).toMatchObject({ status: 201 })
    expect(types()).toEqual(['claimed', 'completed'])
  })

  test.each<[string, string, (context: IdempotencyContext, res: Response) => Promise<unknown>]>([
    ['without a context', 'context_missing', async (_context, res) => store.transaction(undefined, () => res.end())],
    [
      'of another store',
      'context_foreign',
      async (context, res) => storeOn({ pool, transactions: application }).transaction(context, () => res.end()),
    ],
    [
      'inside another',
      'transaction_nested',
      async (context, res) =>
        store.transaction(context, async () => {
          await store.transaction(context, () => res.end())
        }),
    ],
    [
      'beside another',
      'transaction_nested',
      async (context, res) =>
        Promise.all([store.transaction(context, () => res.end()), store.transaction(context, () => res.end())]),
    ],
    [
      'behind one that committed',
      'transaction_committed',
      async (context, res) => {
        await store.transaction(context, () => res.end('done'), { allowEmpty: true })
        await store.transaction(context, () => {})
      },
    ],
    [
      'behind the answer',
      'transaction_late',
      async (context, res) => {
        res.end('done')
        await store.transaction(context, (tx) => insert(tx))
      },
    ],
    [
      'behind the first byte',
      'transaction_late',
      async (context, res) => {
        res.write('do')
        await store.transaction(context, (tx) => insert(tx))
      },
    ],
    [
      'by a store without transactions',
      'transactions_missing',
      async (context) => storeOn({ pool }).transaction(context, () => {}),
    ],
  ])('%s is misuse: %s', async (_title, code, misuse) => {
    await serve((_req, res, context) => misuse(context, res))
    await post().catch(() => {}) // Behind the first byte, the error page is a closed connection.
    await idle()
    expect(errors).toMatchObject([{ name: 'IdempotencyError', code }])
    expect(await effects()).toEqual([])
  })

  test('that goes on after a failed statement is rolled back, and told so: another one may follow', async () => {
    const rejected: unknown[] = []
    await serve(async (_req, res, context) => {
      const attempted = (isFirst: boolean) =>
        store.transaction(context, async (tx) => {
          await insert(tx)
          if (isFirst) await tx.query('SELECT 1 / 0').catch(() => {})
          res.status(201).json({ isFirst })
        })
      await attempted(true).catch((error) => rejected.push([error.name, error.code, error.cause.code]))
      await attempted(false)
    })
    expect(await post()).toMatchObject({ status: 201, body: { isFirst: false } })
    expect(rejected).toEqual([['PostgresStoreError', 'transaction_rolled_back', '25P02']])
    expect(await effects()).toHaveLength(1)
  })

  test('whose session ends before its completion is rolled back for certain: another one may follow', async () => {
    const rejected: unknown[] = []
    await serve(async (_req, res, context) => {
      const attempted = (isFirst: boolean) =>
        store.transaction(context, async (tx) => {
          await insert(tx)
          if (isFirst) {
            const { rows } = await tx.query('SELECT pg_backend_pid() AS pid')
            const ended = once(tx, 'error')
            await query('SELECT pg_terminate_backend($1)', [rows[0].pid])
            await ended
          }
          res.status(201).json({ isFirst })
        })
      await attempted(true).catch((error) => rejected.push([error.code, error.cause.code]))
      await attempted(false)
    })
    expect(await post()).toMatchObject({ status: 201, body: { isFirst: false } })
    expect(rejected).toEqual([['transaction_rolled_back', '57P01']])
    expect(await effects()).toHaveLength(1)
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed'])
  })
})

describe('a step', () => {
  test('commits writes, and makes the record uncertain', async () => {
    const seen: unknown[] = []
    await serve(async (_req, res, context) => {
      expect(await store.step(context, 'e1', async (tx) => (await insert(tx)).rowCount)).toBe(1)
      seen.push(await record(), await effects())
      await store.step(context, 'e2', async (tx) => void (await insert(tx, 'e2')))
      await store.transaction(context, async (tx) => {
        await insert(tx, 'e3')
        res.status(201).json({})
      })
    })
    expect(await post()).toMatchObject({ status: 201 })
    expect(seen).toMatchObject([{ state: 'in-flight', uncertain: true }, ['e1']])
    expect(await effects()).toEqual(['e1', 'e2', 'e3'])
    expect(await record()).toMatchObject({ state: 'completed' })
  })

  test('behind which a refusal leaves the outcome unknown', async () => {
    await serve(async (_req, res, context) => {
      await store.step(context, 'e1', async (tx) => void (await insert(tx)))
      res.status(422).json({})
    })
    await post()
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('that was rolled back does not', async () => {
    await serve(async (_req, res, context) => {
      await store
        .step(context, 'e1', async (tx) => {
          await insert(tx)
          throw new Error('no')
        })
        .catch(() => {})
      res.status(422).json({})
    })
    await post()
    expect(await effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: false })
  })

  test('of an attempt that lost its record commits nothing', async () => {
    await serve(async (_req, _res, context) => {
      await query("UPDATE once_per_key.records SET token = 'other'")
      await store.step(context, 'e1', async (tx) => void (await insert(tx)))
    })
    await post()
    expect(errors).toMatchObject([{ code: 'record_taken' }])
    expect(await effects()).toEqual([])
  })

  test('answers nothing: what is answered meanwhile is completed behind it', async () => {
    await serve(async (_req, res, context) => {
      await store.step(context, 'e1', async (tx) => {
        await insert(tx)
        res.status(201).json({ from: 'step' })
      })
    })
    expect(await post()).toMatchObject({ status: 201, body: { from: 'step' } })
    expect(await post()).toMatchObject({ status: 201, replayed: 'true' })
  })
})

describe('an answer that is given inside a step', () => {
  test.each<[string, (tx: PoolClient) => Promise<unknown>]>([
    ['throws', () => Promise.reject(new Error('no'))],
    [
      'is undone at its COMMIT',
      async (tx) => {
        await tx.query('CREATE TABLE IF NOT EXISTS once (id text UNIQUE DEFERRABLE INITIALLY DEFERRED)')
        await tx.query("INSERT INTO once VALUES ('y'), ('y')")
      },
    ],
  ])('that %s is neither sent nor stored', async (_title, undo) => {
    await serve(async (_req, res, context) => {
      await store.step(context, 'e1', async (tx) => {
        await insert(tx)
        res.status(201).json({ paid: true })
        await undo(tx)
      })
    })
    expect(await post()).toMatchObject({ status: 503, body: { code: 'store_unavailable' } })
    await idle()
    expect(await effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })
})

describe('a completion by hand', () => {
  async function byHand(context: IdempotencyContext, end: 'COMMIT' | 'ROLLBACK'): Promise<void> {
    const tx = await application.connect()
    try {
      await tx.query('BEGIN')
      await insert(tx)
      await store.completeIn(tx, context, { status: 201, body: { id: 'e1' }, headers: { 'X-Extra': 'kept' } })
      await tx.query(end)
    } catch (error) {
      await tx.query('ROLLBACK')
      throw error
    } finally {
      tx.release()
    }
  }

  test('is what is sent, whatever the handler answers', async () => {
    await serve(async (_req, res, context) => {
      await byHand(context, 'COMMIT')
      res.status(500).json({ other: true })
    })
    const answer = { status: 201, body: { id: 'e1' }, extra: 'kept' }
    expect(await post()).toEqual({ ...answer, replayed: null })
    expect(await post()).toEqual({ ...answer, replayed: 'true' })
    expect(types()).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('that was rolled back leaves the outcome unknown, and the client is told to come back', async () => {
    await serve(async (_req, res, context) => {
      await byHand(context, 'ROLLBACK')
      res.status(201).json({})
    })
    expect(await post()).toMatchObject({ status: 503, body: { code: 'store_unavailable' } })
    expect(types()).toContain('transaction_not_committed')
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('can be tried again when the database has rolled its transaction back', async () => {
    await serve(async (_req, res, context) => {
      await byHand(context, 'ROLLBACK')
      await byHand(context, 'COMMIT')
      res.end()
    })
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' } })
    expect(await effects()).toEqual(['e1'])
    expect(await post()).toMatchObject({ status: 201, replayed: 'true' })
  })

  test('cannot be repeated when its transaction has committed', async () => {
    await serve(async (_req, res, context) => {
      await byHand(context, 'COMMIT')
      await query('DELETE FROM effects')
      await byHand(context, 'COMMIT')
      res.end()
    })
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' } })
    expect(errors).toHaveLength(1)
    expect(await effects()).toEqual([])
    expect(await post()).toMatchObject({ status: 201, replayed: 'true' })
  })

  test('on a connection that has written nothing is refused: the lease is renewed again, and the handler’s own answer counts', async () => {
    const leaseUntil = async () => (await query('SELECT lease_until FROM once_per_key.records'))[0]?.lease_until
    await serve(async (_req, res, context) => {
      const tx = await application.connect()
      const completed = store.completeIn(tx, context, { status: 201 }).finally(() => tx.release())
      expect(await completed.catch(({ code }) => code)).toBe('nothing_written')
      const before = await leaseUntil()
      await vi.waitFor(async () => expect(await leaseUntil()).not.toEqual(before), { timeout: 1_900 })
      res.status(200).json({ own: true })
    }, FAST)
    expect(await post()).toMatchObject({ status: 200, body: { own: true } })
    expect(types()).toEqual(['claimed', 'completed'])
  })

  test.each<['COMMIT' | 'ROLLBACK', number, string[]]>([
    ['COMMIT', 201, ['claimed', 'completed']],
    ['ROLLBACK', 503, ['claimed', 'transaction_not_committed']],
  ])('that the database answers too late is found out by its record, behind a %s', async (end, status, told) => {
    const late = gate()
    await serve(async (_req, res, context) => {
      const tx = await application.connect()
      await tx.query('BEGIN')
      await insert(tx)
      const query = (text: string, values: unknown[]) =>
        tx.query(text, values).then((reply) => late.opened.then(() => reply))
      const completed = store.completeIn({ query } as PoolClient, context, { status: 201, body: { id: 'e1' } })
      expect(await completed.catch(({ code }) => code)).toBe('transaction_timed_out')
      await tx.query(end)
      tx.release()
      late.open()
      res.status(402).json({ refused: true })
    }, FAST)
    expect(await post()).toMatchObject({ status })
    expect(types()).toEqual(told)
  })

  test('is waited for as long as `storeTimeoutMs` says', async () => {
    const sent = gate()
    const late = gate()
    const handler: Handler = async (_req, res, context) => {
      const tx = await application.connect()
      await tx.query('BEGIN')
      await insert(tx)
      const query = async (text: string, values: unknown[]) => {
        sent.open()
        await late.opened
        return tx.query(text, values)
      }
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      const completed = store.completeIn({ query } as PoolClient, context, { status: 201, body: { id: 'e1' } })
      await sent.opened
      await vi.advanceTimersByTimeAsync(50_000)
      vi.useRealTimers()
      late.open()
      await completed
      await tx.query('COMMIT')
      tx.release()
      res.end()
    }
    await serve(handler, { leaseMs: 240_000, storeTimeoutMs: 60_000 })
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' } })
    expect(errors).toEqual([])
  })

  test('is asked for only when its transaction is over', async () => {
    const answered = gate()
    await serve(async (_req, res, context) => {
      const tx = await application.connect()
      await tx.query('BEGIN')
      await insert(tx)
      await store.completeIn(tx, context, { status: 201, body: 'early' })
      res.end('early')
      answered.open()
      await new Promise((resolve) => setTimeout(resolve, 300))
      await tx.query('COMMIT')
      tx.release()
    })
    const response = post()
    await answered.opened
    expect(await response).toMatchObject({ status: 201, body: 'early' })
  })
})

describe('a COMMIT without a reply', () => {
  /** The application's connections, by way of a proxy that loses what it is told to lose. */
  async function throughProxy() {
    const proxy = await startFaultProxy(database.port)
    const behindProxy = openPool(url.replace(`:${database.port}`, `:${proxy.port}`))
    onTestFinished(async () => {
      await behindProxy.end()
      await proxy.close()
    })
    return { proxy, inProxy: storeOn({ pool, transactions: behindProxy }) }
  }

  async function serveThatLoses(loss: 'dropRequest' | 'dropReplyTo') {
    const { proxy, inProxy } = await throughProxy()
    await serve(
      async (_req, res, context) => {
        await inProxy.transaction(context, async (tx) => {
          await insert(tx)
          res.status(201).json({ id: 'e1' })
          void proxy[loss]('COMMIT')
        })
      },
      { ...FAST, store: inProxy },
    )
  }

  test('that was carried out is found out, and the answer is sent', async () => {
    await serveThatLoses('dropReplyTo')
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: null })
    expect(await effects()).toEqual(['e1'])
    expect(types()).toEqual(['claimed', 'completion_pending', 'completed'])
    expect(await post()).toMatchObject({ status: 201, replayed: 'true' })
  })

  test('that never arrived is found out, the answer is discarded, and the handler hears it', async () => {
    await serveThatLoses('dropRequest')
    expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
    expect(await effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('lets no success out that the handler answers behind it', async () => {
    const { proxy, inProxy } = await throughProxy()
    await serve(
      async (_req, res, context) => {
        await inProxy
          .transaction(context, async (tx) => {
            await insert(tx)
            res.status(201).json({ id: 'e1' })
            void proxy.dropRequest('COMMIT')
          })
          .catch(() => {})
        res.status(200).json({ careless: true })
      },
      { ...FAST, store: inProxy },
    )
    expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' } })
    expect(await effects()).toEqual([])
  })

  test('that nobody can resolve until maxRunMs is over is 503, and the key is as after a crash', async () => {
    const { proxy } = await throughProxy()
    const commands = await startFaultProxy(database.port)
    const small = openPool(url.replace(`:${database.port}`, `:${commands.port}`))
    onTestFinished(async () => {
      await small.end()
      await commands.close()
    })
    const cutOff = storeOn({ pool: small, transactions: openPool(url.replace(`:${database.port}`, `:${proxy.port}`)) })
    await serve(
      async (_req, res, context) => {
        await cutOff.transaction(context, async (tx) => {
          await insert(tx)
          res.status(201).json({ id: 'e1' })
          void proxy.dropReplyTo('COMMIT').then(() => commands.cut())
        })
      },
      { ...FAST, store: cutOff },
    )
    expect(await post()).toMatchObject({ status: 503, body: { code: 'store_unavailable' } })
    expect(types()).toEqual(expect.arrayContaining(['completion_pending', 'completion_given_up']))
    await idle()
    commands.heal()
    expect(await effects()).toEqual(['e1'])
    expect(await record()).toMatchObject({ state: 'completed' })
  })
})
