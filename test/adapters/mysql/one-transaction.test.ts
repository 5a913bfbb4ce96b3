import type { PoolConnection } from 'mysql2/promise'
import type { IdempotencyContext, IdempotencyOptions } from 'once-per-key'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { gate } from '../../support/gate.js'
import type { Handler } from '../../support/payout-servers.js'
import { claimOf, ownOf } from '../claims.js'
import { ISOLATION, openPool, SNAPSHOTS, storeOn } from './open-store.js'
import { onDatabase } from './served.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const LEVELS = [
  ['READ COMMITTED', `SET SESSION ${ISOLATION} = 'READ-COMMITTED'`],
  ['REPEATABLE READ', `SET SESSION ${ISOLATION} = 'REPEATABLE-READ'${SNAPSHOTS}`],
  ['SERIALIZABLE', `SET SESSION ${ISOLATION} = 'SERIALIZABLE'`],
] as const

describe.each(LEVELS)('one transaction and no claim, at %s,', async (level, session) => {
  const on = await onDatabase(session)
  const { store, insert, effects, record, types, errors, query, application } = on
  on.clears()
  const SENT = { status: 201, body: { id: 'e1' } }
  const serve = (handler: Handler, options: Partial<IdempotencyOptions> = {}) =>
    on.serve(handler, { effects: 'in-transaction', ...options })
  const paying =
    (inside: (tx: PoolConnection) => unknown = () => {}): Handler =>
    async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        await inside(tx)
        res.status(201).json({ id: 'e1' })
      })
    }

  test('commits the effects and a completed record, of which nothing is there before', async () => {
    let seen: unknown
    const post = await serve(
      paying(async () => {
        seen = await record()
      }),
    )
    expect(await post()).toMatchObject({ ...SENT, replayed: false })
    expect(seen).toBeNull()
    expect(await record()).toMatchObject({ state: 'completed', attempt: 1 })
    expect(await post()).toMatchObject({ ...SENT, replayed: true })
    expect((await post({ amount: 6 })).body).toMatchObject({ code: 'mismatched' })
    expect(await effects()).toEqual(['e1'])
    expect(types()).toEqual(['claimed', 'completed', 'replayed', 'mismatched'])
  })

  test.each<[string, (context: IdempotencyContext, tx: PoolConnection) => unknown]>([
    ['store.step', (context) => store.step(context, 'reserve', () => null)],
    ['context.step', (context) => context.step('charge', () => 1)],
    ['completeIn', (context, tx) => store.completeIn(tx, context, { status: 201 })],
    ['mayHaveEffect', (context) => context.mayHaveEffect()],
  ])('%s is misuse, and what was written in the transaction is rolled back', async (name, misuse) => {
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        await misuse(context, tx)
        res.status(201).json({ id: 'e1' })
      })
    })
    expect(await post()).toMatchObject({ status: 500 })
    const message = expect.stringContaining(name.replace(/.*\./, ''))
    expect(errors).toMatchObject([{ code: 'effects_in_transaction', message }])
    expect([await record(), await effects()]).toEqual([null, []])
  })

  test('a duplicate in its transaction is refused, told to come back, and waits for no lock', async () => {
    const [entered, go] = [gate(), gate()]
    const post = await serve(
      paying(async () => {
        entered.open()
        await go.opened
      }),
    )
    const first = post()
    await entered.opened
    const refused = { status: 409, body: { code: 'in_flight' }, retryAfter: '1' }
    expect(await post()).toMatchObject(refused)
    expect(await post({ amount: 6 })).toMatchObject(refused)
    go.open()
    expect(await first).toMatchObject(SENT)
    expect(await post()).toMatchObject({ ...SENT, replayed: true })
  })

  test('a failure is not sent while another attempt is in its transaction, and not after it has succeeded', async () => {
    const [entered, go] = [gate(), gate()]
    let turn = 0
    const post = await serve(async (req, res, context) => {
      turn++
      if (turn > 1) {
        if (turn === 3) go.open()
        if (turn === 3) await vi.waitFor(async () => expect(await record()).not.toBeNull())
        return void res.status(422).json({ failed: true })
      }
      await paying(async () => {
        entered.open()
        await go.opened
      })(req, res, context)
    })
    const first = post()
    await entered.opened
    expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' } })
    expect(await post()).toMatchObject({ ...SENT, replayed: true })
    expect(await first).toMatchObject(SENT)
  })

  test('a failure or a throw leaves nothing, and another body may follow', async () => {
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
    expect((await post({ amount: 6 })).status).toBe(422)
    expect(await record()).toBeNull()
    expect(await query('SELECT 1 FROM once_per_key_records')).toEqual([])
    expect(await post({ amount: 7 })).toMatchObject(SENT)
    expect(await effects()).toEqual(['e1'])
  })

  test('a success without a transaction is withheld, and its key is failed and uncertain', async () => {
    const post = await serve(async (_req, res) => void res.status(201).json({ id: 'e1' }))
    expect((await post()).status).toBe(500)
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true, attempt: 1 })
  })

  test('a transaction that writes nothing is rolled back, and one that may write nothing commits its record', async () => {
    let allowEmpty = false
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async () => void res.status(201).json({ id: 'e1' }), { allowEmpty })
    })
    expect((await post()).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'nothing_written' }])
    expect(await record()).toBeNull()
    allowEmpty = true
    expect(await post()).toMatchObject(SENT)
    expect(await post()).toMatchObject({ ...SENT, replayed: true })
  })

  test('a statement that commits in the work is caught: nobody runs again, since its effects may be there', async () => {
    const post = await serve(paying((tx) => tx.query('CREATE TABLE IF NOT EXISTS another (id INT)')))
    expect((await post()).status).not.toBe(201)
    expect(await post()).toMatchObject({ status: 409, body: { code: 'mismatched' } })
    expect(await effects()).toEqual(['e1'])
  })

  test('an attempt whose session dies leaves nothing, and the next one runs at once', async () => {
    let turn = 0
    const post = await serve(
      paying(async (tx) => {
        if (++turn > 1) return
        const [[row]] = (await tx.query('SELECT CONNECTION_ID() AS id')) as unknown as [[{ id: number }]]
        await query(`KILL CONNECTION ${row.id}`)
        // Until it is rolled back its lock counts as another attempt's.
        const open = `SELECT 1 FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = ${row.id}`
        while ((await query(open)).length > 0);
      }),
    )
    expect((await post()).status).toBeGreaterThanOrEqual(500)
    expect(await post()).toMatchObject(SENT)
    expect(await effects()).toEqual(['e1'])
  })

  describe('a COMMIT without a reply', () => {
    const through = async (lose: (proxy: Awaited<ReturnType<typeof on.throughProxy>>['proxy']) => unknown) => {
      const { proxy, inProxy } = await on.throughProxy()
      let turn = 0
      return serve(
        async (_req, res, context) => {
          await inProxy.transaction(context, async (tx) => {
            await insert(tx)
            res.status(201).json({ id: 'e1' })
            if (turn++ === 0) void lose(proxy)
          })
        },
        { store: inProxy },
      )
    }

    test('that was carried out is found by its token, and the answer is sent', async () => {
      const post = await through((proxy) => proxy.dropReplyTo('COMMIT'))
      expect(await post()).toMatchObject({ ...SENT, replayed: false })
      expect(await effects()).toEqual(['e1'])
    })

    test('that never arrived is found too: the handler hears it, and nothing is left', async () => {
      const post = await through((proxy) => proxy.dropRequest('COMMIT'))
      expect((await post()).status).toBe(500)
      expect(await effects()).toEqual([])
      expect(await record()).toBeNull()
      expect(await post()).toMatchObject(SENT)
    })
  })

  test('a key whose expired row no sweep has taken yet is new', async () => {
    await store.complete('single-tenant:k', {
      ...ownOf('old'),
      answer: { status: 200, statusMessage: '', headers: [], body: null },
    })
    await query('UPDATE once_per_key_records SET expires_at = 1')
    const post = await serve(paying())
    expect(await post()).toMatchObject({ ...SENT, replayed: false })
    expect(await record()).toMatchObject({ state: 'completed', attempt: 1 })
  })

  describe('a record that the leased way has left', () => {
    const left = async (uncertain: boolean) => {
      const seen: unknown[] = []
      const post = await serve(async (req, res, context) => {
        seen.push(context.attempt, context.previousOutcome)
        await paying()(req, res, context)
      })
      const leased = await on.serve(async (_req, res) => void res.status(uncertain ? 500 : 422).end())
      await leased()
      return { post, seen }
    }

    test('as failed with certainty: the next attempt is told so, with any body', async () => {
      const { post, seen } = await left(false)
      expect(await post({ amount: 6 })).toMatchObject(SENT)
      expect(seen).toEqual([2, 'failed'])
      expect(await record()).toMatchObject({ state: 'completed', attempt: 2 })
    })

    test('as uncertain: the next attempt is told so, another body is refused', async () => {
      const { post, seen } = await left(true)
      expect((await post({ amount: 6 })).body).toMatchObject({ code: 'mismatched' })
      expect(await post()).toMatchObject(SENT)
      expect(seen).toEqual([2, 'unknown'])
    })

    test('and that changes while the transaction works waits for it, and finds it completed', async () => {
      await store.begin('single-tenant:k', claimOf('owner'))
      await store.release('single-tenant:k', { ...ownOf('owner'), failedMs: 60_000 })
      let renewed: Promise<unknown> | undefined
      const post = await serve(
        paying(() => {
          renewed = store.begin('single-tenant:k', claimOf('thief')).catch((error) => error)
        }),
      )
      expect(await post()).toMatchObject(SENT)
      expect(await renewed).toMatchObject({ acquired: false })
      expect(await record()).toMatchObject({ state: 'completed', attempt: 2 })
    })
  })

  test('a leased claim that is made while the transaction is open is refused as in flight', async () => {
    let begun: unknown
    const post = await serve(
      paying(async () => {
        begun = await store.begin('single-tenant:k', claimOf('leased'))
      }),
    )
    expect(await post()).toMatchObject(SENT)
    expect(begun).toMatchObject({ acquired: false, record: { state: 'in-flight', leaseRemainingMs: 1 } })
  })

  test('on another database than the store, which has the same tables, is noticed, and nothing is committed', async () => {
    const elsewhere = openPool(await on.database.createDatabase(`elsewhere_${level.replace(' ', '_')}`))
    onTestFinished(() => elsewhere.end())
    await storeOn({ pool: elsewhere }).migrate()
    await elsewhere.query('CREATE TABLE effects (id VARCHAR(64) PRIMARY KEY) ENGINE = InnoDB')
    const apart = storeOn({ pool: on.pool, transactions: elsewhere }) as unknown as typeof store
    const post = await serve(
      async (_req, res, context) => {
        await apart.transaction(context, async (tx) => {
          await insert(tx)
          res.status(201).end()
        })
      },
      { store: apart },
    )
    for (let times = 0; times < 2; times++) {
      expect(await post()).toMatchObject({ status: 500 })
      expect(errors.splice(0)).toMatchObject([{ code: 'record_absent' }])
    }
    expect((await elsewhere.query('SELECT * FROM effects'))[0]).toEqual([])
  })

  test('of 40 attempts for 8 keys at once, each key has one effect, and nobody is told of a deadlock', async () => {
    const post = await serve(
      async (_req, res, context) => {
        const { key } = context
        await store.transaction(context, async (tx) => {
          await insert(tx, `${key}`)
          res.status(201).json({ id: key })
        })
      },
      { inFlightWaitMs: 8_000 },
    )
    const told = await Promise.all(Array.from({ length: 40 }, (_, i) => post({ key: `key-${i % 8}` })))
    // Whoever has waited in vain, as on a busy machine, was told to come back.
    for (const { status, body } of told) expect([201, 'in_flight']).toContain(status === 201 ? status : body.code)
    for (let i = 0; i < 8; i++) expect((await post({ key: `key-${i}` })).status).toBe(201)
    expect(await effects()).toHaveLength(8)
    expect(errors.filter(({ code }) => !['operation_taken', 'transaction_timed_out'].includes(`${code}`))).toEqual([])
    expect((await application.query('SELECT 1'))[0]).toHaveLength(1)
  })

  test('of attempts at once that are rolled back in turn, none is told of a deadlock', async () => {
    const runs = new Map<unknown, number>()
    const post = await serve(async (_req, res, context) => {
      const { key } = context
      await store.transaction(context, async (tx) => {
        await insert(tx, `${key}`)
        const run = (runs.get(key) ?? 0) + 1
        runs.set(key, run)
        if (run < 4) return void res.status(402).json({})
        res.status(201).json({ id: key })
      })
    })
    for (let i = 0; i < 10; i++) await Promise.all(Array.from({ length: 6 }, () => post({ key: `key-${i}` })))
    expect(errors.filter(({ code }) => !['operation_taken', 'transaction_timed_out'].includes(`${code}`))).toEqual([])
  })
})
