import { setTimeout as pause } from 'node:timers/promises'
import { type PoolConnection as CallbackConnection, createPool as createCallbackPool } from 'mysql2'
import type { PoolConnection } from 'mysql2/promise'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Statement } from '../../../adapters/mysql/sql.js'
import { gate } from '../../support/gate.js'
import { transactionByHand } from '../../support/transaction-by-hand.js'
import { claimOf, ownOf } from '../claims.js'
import { ISOLATION, openPool, SNAPSHOTS, storeOn } from './open-store.js'
import { onDatabase } from './served.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const LEVELS = [
  ['READ COMMITTED', `SET SESSION ${ISOLATION} = 'READ-COMMITTED'`],
  ['REPEATABLE READ', `SET SESSION ${ISOLATION} = 'REPEATABLE-READ'${SNAPSHOTS}`],
  ['SERIALIZABLE', `SET SESSION ${ISOLATION} = 'SERIALIZABLE'`],
] as const

describe.each(LEVELS)('a transaction at %s', async (_level, session) => {
  const on = await onDatabase(session)
  const { store, serve, insert, effects, record, types, errors, lapse, application, url } = on
  on.clears()
  const SENT = { status: 201, body: { id: 'e1' } }

  test('commits effects and record together, and the answer leaves behind its COMMIT', async () => {
    let seenInside: unknown
    const post = await serve(async (_req, res, context) => {
      const value = await store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({ id: 'e1' })
        seenInside = (await record())?.state
        return 7
      })
      expect(value).toBe(7)
    })
    expect(await post()).toMatchObject({ ...SENT, replayed: false })
    expect(seenInside).toBe('in-flight')
    expect(await effects()).toEqual(['e1'])
    expect(await post()).toMatchObject({ ...SENT, replayed: true })
    expect(types()).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('that throws, or answers a failure, leaves nothing behind', async () => {
    let turn = 0
    const post = await serve(async (_req, res, context) => {
      turn++
      await store.transaction(context, async (tx) => {
        await insert(tx)
        if (turn === 1) throw new Error('no')
        res.status(turn === 2 ? 422 : 201).json({ id: 'e1' })
      })
    })
    expect((await post()).status).toBe(500)
    expect((await post()).status).toBe(422)
    expect(await effects()).toEqual([])
    expect(await post()).toMatchObject(SENT)
    expect(await effects()).toEqual(['e1'])
  })

  test('of an owner that has lost its lease does not commit', async () => {
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        await lapse()
        const claim = { ...claimOf('thief'), fingerprint: (await record())?.fingerprint ?? '' }
        expect(await store.begin('single-tenant:k', claim)).toMatchObject({ acquired: true, attempt: 2 })
        res.status(201).json({ id: 'e1' })
      })
    })
    expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' } })
    expect(errors).toMatchObject([{ code: 'record_taken' }])
    expect(await effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'in-flight', attempt: 2 })
  })

  test('whose record has gone does not commit', async () => {
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        await on.query('DELETE FROM once_per_key_records')
        res.status(201).json({ id: 'e1' })
      })
    })
    expect((await post()).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'record_absent' }])
    expect(await effects()).toEqual([])
  })

  test('in which nothing was written is rolled back, unless that is allowed', async () => {
    let allowEmpty = false
    const post = await serve(async (_req, res, context) => {
      await store.transaction(
        context,
        async (tx) => {
          await tx.query('SELECT 1')
          if (!allowEmpty) await insert(application) // `tx` was forgotten.
          res.status(201).json({ id: 'e1' })
        },
        { allowEmpty },
      )
    })
    expect((await post()).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'nothing_written' }])
    allowEmpty = true
    expect((await post()).status).toBe(201)
  })

  test.each<[string, (tx: PoolConnection) => Promise<unknown>]>([
    ['by a prepared statement', (tx) => tx.execute('INSERT INTO effects VALUES (?)', ['e1'])],
    [
      'by a savepoint of its own',
      (tx) =>
        tx
          .query('SAVEPOINT a')
          .then(() => insert(tx))
          .then(() => tx.query('RELEASE SAVEPOINT a')),
    ],
  ])('may write %s', async (_name, write) => {
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await write(tx)
        res.status(201).json({ id: 'e1' })
      })
    })
    expect((await post()).status).toBe(201)
    expect(await effects()).toEqual(['e1'])
  })

  test.each([
    ['COMMIT', ['COMMIT', 'START TRANSACTION']],
    ['ROLLBACK', ['ROLLBACK', 'START TRANSACTION']],
    ['DDL, which commits', ['CREATE TABLE IF NOT EXISTS other (id INT)']],
  ])('that was ended inside by %s is caught: the record is not completed', async (_name, statements) => {
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        for (const sql of statements) await tx.query(sql)
        await insert(tx)
        res.status(201).json({ id: 'e1' })
      })
    })
    expect((await post()).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'transaction_unmarked' }])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test.each([
    ['resolves', () => {}, 'transaction_unmarked'],
    ['throws', () => Promise.reject({ code: 'thrown' }), 'thrown'],
  ])('that was ended inside by LOCK TABLES, and %s, leaves no table locked', async (_name, end, code) => {
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await tx.query('LOCK TABLES effects WRITE')
        await insert(tx)
        res.status(201).json({ id: 'e1' })
        await end()
      })
    })
    expect((await post()).status).toBe(500)
    expect(errors).toMatchObject([{ code }])
    const other = await on.pool.getConnection()
    onTestFinished(() => other.release())
    await other.query('SET lock_wait_timeout = 1')
    await insert(other, 'e2')
  })

  test('whose deadlock was swallowed is caught: the database had rolled everything back', async () => {
    const [both, over] = [gate(), gate()]
    await insert(application, 'a')
    await insert(application, 'b')
    const other = await application.getConnection()
    onTestFinished(() => other.release())
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await tx.query("UPDATE effects SET id = id WHERE id = 'a'")
        both.open()
        await over.opened
        // One of the two is chosen: this one has written less.
        await tx.query("SELECT * FROM effects WHERE id = 'b' FOR UPDATE").catch(() => {})
        await insert(tx, 'e1')
        res.status(201).json({ id: 'e1' })
      })
    })
    const posted = post()
    await both.opened
    await other.query('START TRANSACTION')
    await other.query("DELETE FROM effects WHERE id = 'b'")
    await other.query("INSERT INTO effects VALUES ('c'), ('d'), ('f'), ('g')")
    const blocked = other.query("DELETE FROM effects WHERE id = 'a'").then(() => other.query('COMMIT'))
    const isBlocked = async () => {
      const [rows] = await application.query(
        "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
      )
      expect(rows).toHaveLength(1)
    }
    // The server shows it anew only when nobody has looked for 100 ms.
    await vi.waitFor(isBlocked, { interval: 250, timeout: 10_000 })
    over.open()
    expect((await posted).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'transaction_unmarked' }])
    await blocked
  })

  test('by hand completes the record with the transaction that the application opened', async () => {
    const post = await serve(async (_req, res, context) => {
      const tx = await application.getConnection()
      await tx.query('START TRANSACTION')
      await insert(tx)
      await store.completeIn(tx, context, { status: 201, body: { id: 'e1' } })
      await tx.query('COMMIT')
      tx.release()
      res.status(500).end() // What the record says is sent.
    })
    expect(await post()).toMatchObject(SENT)
    expect(await post()).toMatchObject({ ...SENT, replayed: true })
  })

  test('over a client with a member of its own that is named as one of the store does not use it', async () => {
    const sessionEnd = vi.fn()
    const client = {
      run: (tx: PoolConnection, { text, values }: Statement) => tx.query(text, [...values]),
      transaction: async (work: (tx: PoolConnection) => Promise<void>) =>
        transactionByHand(await application.getConnection(), work),
      sessionEnd,
    }
    const onClient = storeOn({ pool: on.pool, transactions: client })
    const post = await serve(
      async (_req, res, context) => {
        await onClient.transaction(context, async (tx) => {
          await insert(tx)
          res.status(201).json({ id: 'e1' })
        })
      },
      { store: onClient },
    )
    expect(await post()).toMatchObject(SENT)
    expect(sessionEnd).not.toHaveBeenCalled()
    expect(await effects()).toEqual(['e1'])
  })

  test('by hand is waited for as long as `storeTimeoutMs` says', async () => {
    const sent = gate()
    const late = gate()
    const post = await serve(
      async (_req, res, context) => {
        const tx = await application.getConnection()
        await tx.query('START TRANSACTION')
        await insert(tx)
        const { connection } = tx as unknown as { connection: CallbackConnection }
        const query = (...sending: [never, never]) => {
          sent.open()
          void late.opened.then(() => void connection.query(...sending))
        }
        vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
        const completed = store.completeIn({ query } as never, context, { status: 201, body: { id: 'e1' } })
        await sent.opened
        await vi.advanceTimersByTimeAsync(50_000)
        vi.useRealTimers()
        late.open()
        await completed
        await tx.query('COMMIT')
        tx.release()
        res.end()
      },
      { leaseMs: 240_000, maxRunMs: 300_000, storeTimeoutMs: 60_000 },
    )
    expect(await post()).toMatchObject(SENT)
  })

  test('by hand without a transaction is misuse, and nothing is completed', async () => {
    const post = await serve(async (_req, _res, context) => {
      const tx = await application.getConnection()
      await store.completeIn(tx, context, { status: 201 }).finally(() => tx.release())
    })
    expect((await post()).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'nothing_written' }])
    expect(await record()).toMatchObject({ state: 'failed' })
  })

  describe('whose COMMIT gets no reply', () => {
    test('and was carried out sends its answer', async () => {
      const { proxy, inProxy } = await on.throughProxy()
      const post = await serve(
        async (_req, res, context) => {
          await inProxy.transaction(context, async (tx) => {
            await insert(tx)
            res.status(201).json({ id: 'e1' })
            void proxy.dropReplyTo('COMMIT')
          })
        },
        { store: inProxy },
      )
      expect(await post()).toMatchObject(SENT)
      expect(await effects()).toEqual(['e1'])
    })

    test('and never arrived is rolled back, and the next attempt runs', async () => {
      const { proxy, inProxy } = await on.throughProxy()
      let drops = true
      const post = await serve(
        async (_req, res, context) => {
          await inProxy.transaction(context, async (tx) => {
            await insert(tx)
            res.status(201).json({ id: 'e1' })
            if (drops) void proxy.dropRequest('COMMIT')
            drops = false
          })
        },
        { store: inProxy },
      )
      expect((await post()).status).toBe(500)
      expect(await effects()).toEqual([])
      expect(await post()).toMatchObject(SENT)
      expect(await effects()).toEqual(['e1'])
    })
  })

  test('while its lapsed record is locked by its completion, nobody takes it over', async () => {
    await store.begin('locked', claimOf('t'))
    const tx = await application.getConnection()
    await tx.query('START TRANSACTION')
    await tx.query("UPDATE once_per_key_records SET uncertain = 1 WHERE name = 'locked'")
    await on.query("SELECT 1 FROM once_per_key_records WHERE name = 'locked' AND lease_until > 0")
    const record = { state: 'in-flight', leaseRemainingMs: 1 }
    await tx.query("UPDATE once_per_key_records SET lease_until = 1, revision = revision + 1 WHERE name = 'locked'")
    await tx.query('COMMIT')
    await tx.query('START TRANSACTION')
    await tx.query("SELECT 1 FROM once_per_key_records WHERE name = 'locked' FOR UPDATE")
    for (const unknownOutcome of ['rerun', 'refuse'] as const)
      expect(await store.begin('locked', { ...claimOf('t2'), unknownOutcome })).toMatchObject({
        acquired: false,
        record,
      })
    await expect(store.release('locked', { ...ownOf('t'), failedMs: 1_000 })).rejects.toMatchObject({
      code: 'record_locked',
    })
    await tx.query('ROLLBACK')
    tx.release()
    expect(await store.begin('locked', claimOf('t2'))).toMatchObject({ acquired: true, attempt: 2 })
  })

  test.each([
    ['its completion', 'FOR UPDATE', 'transaction', 'assumed'],
    ['its completion, without a claim', 'FOR UPDATE', 'transaction', 'in-transaction'],
    ['its entry', 'SAVEPOINT', 'transaction', 'in-transaction'],
    ['its completion by hand', 'FOR UPDATE', 'completeIn', 'assumed'],
  ] as const)(
    'that was given up at %s is sent nothing more, or that would be committed alone',
    async (_name, text, way, effects_) => {
      const late = gate()
      const tx = await application.getConnection()
      onTestFinished(() => tx.release())
      const sent: string[] = []
      const slow = storeOn({
        pool: openedPool(),
        transactions: {
          async transaction(work: (tx: PoolConnection) => Promise<void>) {
            await tx.query('START TRANSACTION')
            try {
              await work(tx)
              await tx.query('COMMIT')
            } catch (error) {
              await tx.query('ROLLBACK')
              throw error
            }
          },
          async run(tx: PoolConnection, statement: Statement) {
            sent.push(statement.text)
            const result = await tx.query(statement.text, [...statement.values])
            if (statement.text.includes(text)) await late.opened
            return result
          },
        },
      }) as unknown as typeof store
      const post = await serve(
        async (_req, res, context) => {
          if (way === 'transaction') {
            await slow.transaction(context, async (tx) => {
              await insert(tx)
              res.status(201).json({ id: 'e1' })
            })
            return
          }
          await tx.query('START TRANSACTION')
          await insert(tx)
          await slow.completeIn(tx, context, { status: 201 }).finally(() => tx.query('ROLLBACK'))
        },
        { store: slow, effects: effects_, leaseMs: 2_000, maxRunMs: 3_000, storeTimeoutMs: 300 },
      )
      expect((await post()).status).not.toBe(201)
      const before = [...sent]
      late.open()
      await new Promise((resolve) => setImmediate(resolve))
      await tx.query('SELECT 1')
      expect(sent).toEqual(before)
      expect((await record())?.state).not.toBe('completed')
      expect(await effects()).toEqual([])
    },
  )

  test('may be longer than its lease is without a renewal', async () => {
    const post = await serve(
      async (_req, res, context) => {
        await store.transaction(context, async (tx) => {
          await insert(tx)
          await tx.query('SELECT * FROM effects')
          await pause(1_200)
          res.status(201).json({ id: 'e1' })
        })
      },
      { leaseMs: 2_400, storeTimeoutMs: 600, maxRunMs: 6_000 },
    )
    expect(await post()).toMatchObject(SENT)
    expect(errors).toEqual([])
  })

  test('on a callback pool gives its connections', async () => {
    const callbacks = createCallbackPool({ uri: url, connectionLimit: 2 })
    onTestFinished(() => new Promise((resolve) => callbacks.end(() => resolve())))
    const called = storeOn({ pool: openedPool(), transactions: callbacks }) as ReturnType<typeof storeOn>
    const post = await serve(
      async (_req, res, context) => {
        await called.transaction(context, async (tx: CallbackConnection) => {
          await new Promise((resolve) => tx.query("INSERT INTO effects VALUES ('e1')", resolve))
          res.status(201).json({ id: 'e1' })
        })
      },
      { store: called },
    )
    expect(await post()).toMatchObject(SENT)
    expect(await effects()).toEqual(['e1'])
  })

  test('of an isolation level of its own', async () => {
    const post = await serve(async (_req, res, context) => {
      await store.transaction(
        context,
        async (tx) => {
          await insert(tx)
          res.status(201).json({ id: 'e1' })
        },
        { isolation: 'read committed' },
      )
    })
    expect(await post()).toMatchObject(SENT)
  })

  test('does not begin at another isolation level than it was given', async () => {
    const post = await serve(async (_req, res, context) => {
      const work = async (tx: PoolConnection) => {
        await insert(tx)
        res.status(201).json({ id: 'e1' })
      }
      await store.transaction(context, work, { isolation: 'SERIALIZABLE' } as never)
    })
    expect((await post()).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'options_invalid' }])
    expect(await effects()).toEqual([])
  })

  function openedPool() {
    const pool = openPool(url)
    onTestFinished(() => pool.end())
    return pool
  }
})

test('a pool for the commands and the transactions is an option mistake', async () => {
  const pool = openPool('mysql://root@127.0.0.1:1/')
  onTestFinished(() => pool.end())
  expect(() => storeOn({ pool, transactions: pool })).toThrow(/transactions: expected another pool/)
  expect(() => storeOn({ pool, transactions: pool.pool as never })).toThrow(/transactions: expected another pool/)
})
