import type { IdempotencyContext } from 'once-per-key'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { computeLockNumber } from '../../../../adapters/postgres/sql.js'
import { computeRecordId } from '../../../../adapters/sql/record-table.js'
import { gate } from '../../../support/gate.js'
import { IN_STATEMENT } from '../../../support/postgres-statements.js'
import { openPool, storeOn } from '../open-store.js'
import { onDatabase } from './served.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** How long `transact.ts` pauses before it tries a lock again. */
const FENCE_MS = 10
/** The advisory lock of the key that all requests have. */
const LOCK = computeLockNumber(computeRecordId('single-tenant:k'), 'once_per_key')

const LEVELS = await Promise.all(
  ['read committed', 'repeatable read', 'serializable'].map(async (level) => [level, await onDatabase(level)] as const),
)

describe.each(LEVELS)('one transaction and no claim, at %s,', (level, database) => {
  const at = async () => database
  database.clears()

  async function paying(options = {}) {
    const { serve, store, insert } = await at()
    let runs = 0
    const post = await serve(async (_req, res, context) => {
      runs += 1
      await store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({ attempt: context.attempt, previousOutcome: context.previousOutcome })
      })
    }, options)
    return { post, runs: () => runs }
  }

  test('commits the effects and a completed record, of which nothing is there before', async () => {
    const { serve, store, insert, effects, record, types, query } = await at()
    const seen: unknown[] = []
    const post = await serve(async (_req, res, context) => {
      seen.push(await record())
      await store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({ id: 'e1' })
        seen.push(await record())
      })
    })
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: false })
    expect(seen).toEqual([null, null])
    expect(await effects()).toEqual(['e1'])
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: true })
    expect(types()).toEqual(['claimed', 'completed', 'replayed'])
    expect(
      await query('SELECT state, attempt, uncertain = 1 AS uncertain, lease_until FROM once_per_key.records'),
    ).toEqual([{ state: 'completed', attempt: '1', uncertain: false, lease_until: null }])
  })

  test('another body under a completed key is refused', async () => {
    const { post } = await paying()
    await post()
    expect(await post({ amount: 6 })).toMatchObject({ status: 409, body: { code: 'mismatched' } })
  })

  test('a duplicate in its transaction is refused, and told to come back after a second', async () => {
    const { serve, store, insert, effects, errors } = await at()
    const [entered, goOn] = [gate(), gate()]
    let runs = 0
    const post = await serve(async (_req, res, context) => {
      runs += 1
      await store.transaction(context, async (tx) => {
        await insert(tx)
        entered.open()
        await goOn.opened
        res.status(201).json({})
      })
    })
    const first = post()
    await entered.opened
    expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' }, retryAfter: '1' })
    // Its fingerprint is nobody's yet.
    expect(await post({ amount: 6 })).toMatchObject({ status: 409, body: { code: 'in_flight' }, retryAfter: '1' })
    goOn.open()
    expect(await first).toMatchObject({ status: 201 })
    expect(errors).toMatchObject([{ code: 'operation_taken' }, { code: 'operation_taken' }])
    expect(runs).toBe(3)
    expect(await effects()).toEqual(['e1'])
  })

  test('a duplicate that was refused tries no second transaction, though its key is free by then', async () => {
    const { serve, store, insert, effects } = await at()
    const [entered, refused, free] = [gate(), gate(), gate()]
    const codes: unknown[] = []
    let runs = 0
    const post = await serve(async (_req, res, context) => {
      runs += 1
      const isFirst = runs === 1
      const pay = () =>
        store.transaction(context, async (tx) => {
          await insert(tx)
          entered.open()
          await refused.opened
          if (isFirst) throw new Error('no')
          res.status(201).json({})
        })
      if (isFirst) return pay()
      const code = () => pay().catch((error) => error.code)
      codes.push(await code())
      refused.open()
      await free.opened
      codes.push(await code())
      res.status(402).json({})
    })
    const first = post()
    await entered.opened
    const second = post()
    expect(await first).toMatchObject({ status: 500 })
    free.open()
    expect(await second).toMatchObject({ status: 409, body: { code: 'in_flight' } })
    expect(codes).toEqual(['operation_taken', 'operation_taken'])
    expect(await effects()).toEqual([])
  })

  test('a duplicate gets what the record says, whatever it answers', async () => {
    const { serve, store, insert, effects } = await at()
    const [looked, committed] = [gate(), gate()]
    let runs = 0
    const post = await serve(async (_req, res, context) => {
      runs += 1
      if (runs === 2) {
        looked.open()
        await committed.opened
        await store
          .transaction(context, async (tx) => {
            await insert(tx, 'e2')
            res.status(201).json({ id: 'e2' })
          })
          .catch(() => {})
        res.status(402).json({ id: null })
        return
      }
      await looked.opened
      await store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({ id: 'e1' })
      })
    })
    const both = [post(), post()]
    // Whichever has run first.
    expect(await Promise.race(both)).toMatchObject({ status: 201, body: { id: 'e1' } })
    committed.open()
    expect(await Promise.all(both)).toContainEqual(
      expect.objectContaining({ status: 201, body: { id: 'e1' }, replayed: true }),
    )
    for (const told of await Promise.all(both)) expect(told.status).toBe(201)
    expect(await effects()).toEqual(['e1'])
  })

  test('a failure is sent only if the first attempt did not succeed', async () => {
    const { serve, store, insert, query } = await at()
    const [looked, committed] = [gate(), gate()]
    let runs = 0
    const post = await serve(async (_req, res, context) => {
      runs += 1
      if (runs === 2) {
        looked.open()
        await committed.opened
        // The balance is read outside, and shows the first attempt's effect.
        const isPaid = (await query('SELECT FROM effects')).length > 0
        return res.status(isPaid ? 402 : 500).json({})
      }
      await looked.opened
      return store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({ id: 'e1' })
      })
    })
    const both = [post(), post()]
    // Whichever has run first.
    expect(await Promise.race(both)).toMatchObject({ status: 201 })
    committed.open()
    expect(await Promise.all(both)).toContainEqual(
      expect.objectContaining({ status: 201, body: { id: 'e1' }, replayed: true }),
    )
    for (const told of await Promise.all(both)) expect(told.status).toBe(201)
  })

  test('a failure is not sent while another attempt is in its transaction', async () => {
    const { serve, store, insert } = await at()
    const [entered, goOn] = [gate(), gate()]
    let runs = 0
    const post = await serve(async (_req, res, context) => {
      runs += 1
      if (runs === 2) return res.status(402).json({})
      return store.transaction(context, async (tx) => {
        await insert(tx)
        entered.open()
        await goOn.opened
        res.status(201).json({})
      })
    })
    const first = post()
    await entered.opened
    expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' }, retryAfter: '1' })
    goOn.open()
    expect(await first).toMatchObject({ status: 201 })
  })

  test('a failure without a transaction is sent, and nothing is recorded: another body may follow', async () => {
    const { serve, record, types } = await at()
    const told: unknown[] = []
    const post = await serve(async (_req, res, { attempt, previousOutcome }) => {
      told.push([attempt, previousOutcome])
      res.status(422).json({ refused: true })
    })
    expect(await post()).toMatchObject({ status: 422, body: { refused: true } })
    expect(await record()).toBeNull()
    expect(await post({ amount: 6 })).toMatchObject({ status: 422 })
    expect(told).toEqual([
      [1, 'none'],
      [1, 'none'],
    ])
    expect(types()).toEqual(['failed', 'failed'])
  })

  test('a failure in a transaction is rolled back, sent, and recorded nowhere', async () => {
    const { serve, store, insert, effects, record, events } = await at()
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(503).json({ failed: 'inside' })
      })
    })
    expect(await post()).toMatchObject({ status: 503, body: { failed: 'inside' } })
    expect(await effects()).toEqual([])
    expect(await record()).toBeNull()
    expect(events).toMatchObject([{ type: 'claimed' }, { type: 'failed', uncertain: false, because: 'status' }])
  })

  test('a throw rolls back, and another transaction may follow', async () => {
    const { serve, store, insert, effects, types } = await at()
    const post = await serve(async (_req, res, context) => {
      await store
        .transaction(context, async (tx) => {
          await insert(tx)
          res.status(200).json({ from: 1 })
          throw new Error('no')
        })
        .catch(() => {})
      await store.transaction(context, async (tx) => {
        await insert(tx, 'e2')
        res.status(201).json({ from: 2 })
      })
    })
    expect(await post()).toMatchObject({ status: 201, body: { from: 2 } })
    expect(await effects()).toEqual(['e2'])
    expect(types()).toEqual(['claimed', 'completed'])
  })

  test('a success without a transaction is withheld, and its key is failed and uncertain', async () => {
    const { serve, query, record, events } = await at()
    let runs = 0
    const post = await serve(
      async (_req, res) => {
        runs += 1
        await query("INSERT INTO effects VALUES ('elsewhere')")
        res.status(201).json({})
      },
      { unknownOutcome: 'refuse' },
    )
    expect(await post()).toMatchObject({
      status: 500,
      body: { code: 'transaction_missing', message: expect.stringContaining('Find out whether it had its effect') },
    })
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true, attempt: 1 })
    expect(events).toMatchObject([{ type: 'failed', uncertain: true, because: 'no_transaction' }])
    expect(await post()).toMatchObject({ status: 409, body: { code: 'outcome_unknown' } })
    expect(runs).toBe(1)
  })

  test('a success without a transaction gives the answer of an attempt that has committed meanwhile', async () => {
    const { serve, store, insert } = await at()
    const [looked, committed] = [gate(), gate()]
    let runs = 0
    const post = await serve(async (_req, res, context) => {
      runs += 1
      if (runs === 2) {
        looked.open()
        await committed.opened
        return res.status(201).json({ id: 'untrue' })
      }
      await looked.opened
      return store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({ id: 'e1' })
      })
    })
    const both = [post(), post()]
    // Whichever has run first.
    expect(await Promise.race(both)).toMatchObject({ status: 201 })
    committed.open()
    expect(await Promise.all(both)).toContainEqual(
      expect.objectContaining({ status: 201, body: { id: 'e1' }, replayed: true }),
    )
    for (const told of await Promise.all(both)) expect(told.status).toBe(201)
  })

  test('an operation with nothing to write commits its record alone', async () => {
    const { serve, store } = await at()
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, () => res.status(200).json({ balance: 7 }), { allowEmpty: true })
    })
    expect(await post()).toMatchObject({ status: 200, body: { balance: 7 } })
    expect(await post()).toMatchObject({ status: 200, body: { balance: 7 }, replayed: true })
  })

  test('a transaction that writes nothing is rolled back', async () => {
    const { serve, store, errors, record } = await at()
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, () => res.status(201).json({}))
    })
    expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
    expect(errors).toMatchObject([{ code: 'nothing_written' }])
    expect(await record()).toBeNull()
  })

  test('what the work has committed itself leaves the outcome unknown', async () => {
    const { serve, store, insert, effects, errors, record } = await at()
    const told: unknown[] = []
    const post = await serve(async (_req, res, context) => {
      told.push(context.previousOutcome)
      await store.transaction(context, async (tx) => {
        if (told.length > 1) return void res.status(402).json({})
        await insert(tx)
        await tx.query('COMMIT')
        await tx.query('BEGIN')
        res.status(201).json({})
      })
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ code: 'transaction_unmarked' }])
    expect(await effects()).toEqual(['e1'])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true, attempt: 1 })
    await post()
    expect(told).toEqual(['none', 'unknown'])
  })

  test('an attempt whose session dies leaves nothing, and the next one runs at once', async () => {
    const { serve, store, insert, effects, query } = await at()
    let runs = 0
    const told: unknown[] = []
    const post = await serve(async (_req, res, context) => {
      runs += 1
      told.push([context.attempt, context.previousOutcome])
      await store.transaction(context, async (tx) => {
        await insert(tx, `e${runs}`)
        if (runs === 1) {
          const { rows } = await tx.query('SELECT pg_backend_pid() AS pid')
          await query('SELECT pg_terminate_backend($1)', [rows[0].pid])
        }
        res.status(201).json({})
      })
    })
    const { status } = await post()
    expect([409, 500]).toContain(status) // In flight, while the database has not ended the session yet.
    await expect.poll(async () => (await post()).status).toBe(201)
    expect(await effects()).toEqual([`e${runs}`])
    expect(told).toContainEqual([1, 'none'])
    expect(told.every((each) => JSON.stringify(each) === '[1,"none"]')).toBe(true)
  })

  describe('a COMMIT without a reply', () => {
    async function losing(loss: 'dropRequest' | 'dropReplyTo') {
      const { serve, insert, throughProxy } = await at()
      const { proxy, inProxy } = await throughProxy()
      let runs = 0
      return serve(
        async (_req, res, context) => {
          runs += 1
          await inProxy.transaction(context, async (tx) => {
            await insert(tx)
            res.status(201).json({ id: 'e1' })
            if (runs === 1) void proxy[loss]('COMMIT')
          })
        },
        { store: inProxy },
      )
    }

    test('that was carried out is found by its token, and the answer is sent', async () => {
      const { effects, types } = await at()
      const post = await losing('dropReplyTo')
      expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: false })
      expect(await effects()).toEqual(['e1'])
      expect(types()).toEqual(['claimed', 'completion_pending', 'completed'])
    })

    test('that never arrived is found too: the handler hears it, and nothing is left', async () => {
      const { effects, record } = await at()
      const post = await losing('dropRequest')
      expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
      expect(await effects()).toEqual([])
      expect(await record()).toBeNull()
      expect(await post()).toMatchObject({ status: 201 })
    })

    test('is not taken for committed by another attempt’s record', async () => {
      const { serve, insert, query, throughProxy, effects } = await at()
      const { proxy, behind } = await throughProxy()
      const asking = await throughProxy()
      const inProxy = storeOn({ pool: asking.behind, transactions: behind })
      const post = await serve(
        async (_req, res, context) => {
          await inProxy.transaction(context, async (tx) => {
            await insert(tx)
            res.status(201).json({ id: 'mine' })
            void proxy
              .dropRequest('COMMIT')
              .then(() => asking.proxy.hold(IN_STATEMENT.fence))
              .then(async (ask) => {
                // As if another attempt had run and committed before this one asks: attempt 1 as well.
                await query(
                  `INSERT INTO once_per_key.records (id, name, format, revision, state, token, fingerprint, attempt, uncertain, expires_at, status, head)
                   VALUES (sha256('single-tenant:k'), 'single-tenant:k', 1, 1, 'completed', 'other', 'other', 1, 0, 4102444800000, 200, '["",[]]')`,
                )
                ask()
              })
          })
        },
        { store: inProxy },
      )
      expect(await post()).toMatchObject({ status: 409 })
      expect(await effects()).toEqual([])
    })
  })

  test('a key whose expired row no sweep has taken yet is new', async () => {
    const { query, effects, record } = await at()
    const { post } = await paying()
    await post()
    await query('UPDATE once_per_key.records SET expires_at = 1')
    expect(await post({ amount: 6 })).toMatchObject({ status: 201, body: { attempt: 1, previousOutcome: 'none' } })
    expect(await effects()).toEqual(['e1', 'e1'])
    expect(await record()).toMatchObject({ state: 'completed', attempt: 1 })
  })

  test('an expired row that is swept between the look and the transaction does no harm', async () => {
    const { serve, store, insert, query, effects } = await at()
    const { post: before } = await paying()
    await before()
    await query('UPDATE once_per_key.records SET expires_at = 1')
    const post = await serve(async (_req, res, context) => {
      await store.sweep()
      await store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({})
      })
    })
    expect(await post()).toMatchObject({ status: 201 })
    expect(await effects()).toEqual(['e1', 'e1'])
  })

  describe('a record that the leased way has left', () => {
    async function leased(answer: number) {
      const { serve } = await at()
      const post = await serve(async (_req, res) => res.status(answer).json({ leased: true }), { effects: 'assumed' })
      await post()
    }

    /** Its owner is silent from now on, and ends when it is told to. */
    async function leasedAndSilent() {
      const { serve, record } = await at()
      const end = gate()
      const post = await serve(
        async (_req, res) => {
          await end.opened
          res.status(500).json({})
        },
        { effects: 'assumed', leaseMs: 60_000, maxRunMs: 60_000 },
      )
      const told = post()
      await expect.poll(async () => (await record())?.state).toBe('in-flight')
      return async () => {
        end.open()
        return told
      }
    }

    test('as completed is replayed', async () => {
      await leased(201)
      const { post, runs } = await paying()
      expect(await post()).toMatchObject({ status: 201, body: { leased: true }, replayed: true })
      expect(runs()).toBe(0)
    })

    test('as failed with certainty: the next attempt is told so, with any body', async () => {
      await leased(422)
      const { post } = await paying()
      expect(await post({ amount: 6 })).toMatchObject({ status: 201, body: { attempt: 2, previousOutcome: 'failed' } })
      expect(await (await at()).record()).toMatchObject({ state: 'completed', attempt: 2 })
    })

    test('as uncertain: the next attempt is told so, another body is refused', async () => {
      await leased(500)
      const { post } = await paying()
      expect(await post({ amount: 6 })).toMatchObject({ status: 409, body: { code: 'mismatched' } })
      expect(await post()).toMatchObject({ status: 201, body: { attempt: 2, previousOutcome: 'unknown' } })
    })

    test('as uncertain: refused where that is asked for', async () => {
      await leased(500)
      const { post } = await paying({ unknownOutcome: 'refuse' })
      expect(await post()).toMatchObject({ status: 409, body: { code: 'outcome_unknown' } })
    })

    test('as in flight: a duplicate is refused until its lease has lapsed', async () => {
      const { query, record } = await at()
      const wakesUp = await leasedAndSilent()
      const { post } = await paying()
      expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' } })
      await query('UPDATE once_per_key.records SET lease_until = 1')
      expect(await post()).toMatchObject({ status: 201, body: { attempt: 2, previousOutcome: 'unknown' } })
      expect(await wakesUp()).toMatchObject({ status: 201, body: { attempt: 2 }, replayed: true })
      expect(await record()).toMatchObject({ state: 'completed', attempt: 2 })
    })

    test('and changed between look and transaction, so what the context says is untrue, keeps the transaction out', async () => {
      const { serve, store, insert, query, effects, errors } = await at()
      await leased(422)
      const post = await serve(async (_req, res, context) => {
        await query("UPDATE once_per_key.records SET token = 'another', attempt = attempt + 1")
        await store.transaction(context, async (tx) => {
          await insert(tx)
          res.status(201).json({})
        })
      })
      expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' } })
      expect(errors).toMatchObject([{ code: 'operation_taken' }])
      expect(await effects()).toEqual([])
    })

    test.each([
      [422, "token = 'another', attempt = attempt + 1"],
      [500, "token = 'another', uncertain = 0, fingerprint = NULL"],
    ])(
      'as %i and changed between look and transaction is not waited for: no later try could enter',
      async (answer, change) => {
        const { serve, store, insert, query, effects } = await at()
        await leased(answer)
        let asked = 0
        const handler: Parameters<typeof serve>[0] = async (_req, res, context) => {
          asked = performance.now()
          await query(`UPDATE once_per_key.records SET ${change}`)
          await store.transaction(context, async (tx) => {
            await insert(tx)
            res.status(201).json({})
          })
        }
        const post = await serve(handler, { inFlightWaitMs: 9_000 })
        expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' } })
        expect(performance.now() - asked).toBeLessThan(8_000)
        expect(await effects()).toEqual([])
      },
    )

    test('lapsed, and renewed by its owner while the transaction works, keeps the transaction from committing', async () => {
      const { serve, store, insert, query, effects, errors } = await at()
      const wakesUp = await leasedAndSilent()
      await query('UPDATE once_per_key.records SET lease_until = 1')
      const post = await serve(async (_req, res, context) => {
        await store.transaction(context, async (tx) => {
          await insert(tx)
          await query('UPDATE once_per_key.records SET lease_until = 4102444800000')
          res.status(201).json({})
        })
      })
      expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' } })
      expect(errors).toMatchObject([{ code: level === 'read committed' ? 'operation_taken' : '40001' }])
      expect(await effects()).toEqual([])
      await wakesUp()
    })
  })

  test('a leased claim that is made while the transaction is open wins, and the transaction does not commit', async () => {
    const { serve, store, insert, effects } = await at()
    const [entered, goOn] = [gate(), gate()]
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({ way: 'one transaction' })
        entered.open()
        await goOn.opened
      })
    })
    let leasedRuns = 0
    const leased = await serve(
      async (_req, res) => {
        leasedRuns += 1
        res.status(201).json({ way: 'leased' })
      },
      { effects: 'assumed' },
    )
    const first = post()
    await entered.opened
    // It claims the key, which nobody has committed: then the transaction must not commit.
    expect(await leased()).toMatchObject({ status: 201, body: { way: 'leased' } })
    goOn.open()
    expect(await first).toMatchObject({ status: 201, body: { way: 'leased' }, replayed: true })
    expect(leasedRuns).toBe(1)
    expect(await effects()).toEqual([])
  })

  test('racing attempts of both ways have one effect', async () => {
    const { serve, store, insert, query } = await at()
    const one = await paying()
    const leased = await serve(
      async (_req, res, context) => {
        await store.transaction(context, async (tx) => {
          await insert(tx)
          res.status(201).json({})
        })
      },
      { effects: 'assumed' },
    )
    for (let round = 0; round < 5; round++) {
      const key = `race-${round}`
      await Promise.all(Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? one.post({ key }) : leased({ key }))))
    }
    const completed = await query("SELECT count(*)::int AS n FROM once_per_key.records WHERE state = 'completed'")
    const effects = await query('SELECT count(*)::int AS n FROM effects')
    expect(effects).toEqual(completed)
  })

  test('a lock that a fence holds for an instant is tried once more', async () => {
    const { serve, store, insert, pool, effects } = await at()
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        res.status(201).json({})
      })
    })
    const fence = await pool.connect()
    await fence.query('BEGIN')
    await fence.query('SELECT pg_advisory_xact_lock_shared($1)', [LOCK])
    // The first try is refused: only then the fence ends, and after it the pause before the second.
    const pauses: (() => void)[] = []
    const original = globalThis.setTimeout
    const held = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms?: number) => {
      if (ms !== FENCE_MS) return original(run, ms)
      pauses.push(run)
      return original(() => {}, 0)
    }) as typeof setTimeout)
    onTestFinished(() => held.mockRestore())
    const told = post()
    await vi.waitUntil(() => pauses.length > 0, { interval: 1, timeout: 30_000 })
    await fence.query('COMMIT')
    fence.release()
    pauses[0]?.()
    expect(await told).toMatchObject({ status: 201 })
    expect(await effects()).toEqual(['e1'])
  })

  test('a duplicate that has waited in vain is told to come back after a second: there is no lease to go by', async () => {
    const { serve, store, insert } = await at()
    const [entered, goOn] = [gate(), gate()]
    const times = { inFlightWaitMs: 300, storeTimeoutMs: 1_000, leaseMs: 4_000, maxRunMs: 4_000 }
    const post = await serve(async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        entered.open()
        await goOn.opened
        res.status(201).json({})
      })
    }, times)
    const first = post()
    await entered.opened
    expect(await post()).toMatchObject({ status: 409, body: { code: 'in_flight' }, retryAfter: '1' })
    goOn.open()
    expect(await first).toMatchObject({ status: 201 })
  })

  test('waiting duplicates hold no connection, and get the answer', async () => {
    const { serve, insert, url, pool, effects } = await at()
    const narrow = openPool(url, { max: 2 })
    const store = storeOn({ pool, transactions: narrow })
    const [entered, goOn] = [gate(), gate()]
    // Two processes: one cannot see the other's runs.
    const handler = async (
      _req: unknown,
      res: Parameters<Parameters<typeof serve>[0]>[1],
      context: IdempotencyContext,
    ) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        entered.open()
        await goOn.opened
        res.status(201).json({ id: 'e1' })
      })
    }
    // Long enough for a busy machine, on which they start and ask late.
    const options = { store, inFlightWaitMs: 9_000 }
    const [one, other] = [await serve(handler, options), await serve(handler, options)]
    const first = one()
    await entered.opened
    const waiting = Promise.all([other(), other(), other()])
    await expect.poll(() => [narrow.totalCount - narrow.idleCount, narrow.waitingCount]).toEqual([1, 0])
    goOn.open()
    expect(await first).toMatchObject({ status: 201 })
    for (const told of await waiting) expect(told).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: true })
    expect(await effects()).toEqual(['e1'])
    await narrow.end()
  })

  test('a duplicate that has waited gets the answer, also while another one looks at the key in its transaction', async () => {
    const { serve, store, insert, pool } = await at()
    const [entered, looked, goOn, refused, answered] = [gate(), gate(), gate(), gate(), gate()]
    let runs = 0
    const handler: Parameters<typeof serve>[0] = async (_req, res, context) => {
      runs += 1
      if (runs === 2) looked.open()
      try {
        await store.transaction(context, async (tx) => {
          await insert(tx)
          entered.open()
          await goOn.opened
          res.status(201).json({ id: 'e1' })
        })
      } catch {
        refused.open()
        await answered.opened
        res.end()
      }
    }
    const options = { inFlightWaitMs: 9_000 }
    const [one, other] = [await serve(handler, options), await serve(handler, options)]
    const first = one()
    await entered.opened
    const duplicate = other()
    await looked.opened
    goOn.open()
    expect(await first).toMatchObject({ status: 201 })
    await refused.opened
    const another = await pool.connect()
    await another.query('BEGIN')
    await another.query('SELECT pg_try_advisory_xact_lock($1)', [LOCK])
    answered.open()
    expect(await duplicate).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: true })
    await another.query('ROLLBACK')
    another.release()
  })

  test('a waiting duplicate becomes the owner where the first one is rolled back', async () => {
    const { serve, store, insert, effects } = await at()
    const [entered, goOn, answered] = [gate(), gate(), gate()]
    let calls = 0
    const handler: Parameters<typeof serve>[0] = async (_req, res, context) => {
      await store.transaction(context, async (tx) => {
        calls += 1
        const isFirst = calls === 1
        await insert(tx)
        entered.open()
        await goOn.opened
        if (isFirst) throw new Error('no')
        await answered.opened // Else the first one may get its answer.
        res.status(201).json({ id: 'e1' })
      })
    }
    const options = { inFlightWaitMs: 2_500 }
    const [one, other] = [await serve(handler, options), await serve(handler, options)]
    const first = one()
    await entered.opened
    const second = other()
    goOn.open()
    expect([500, 409]).toContain((await first).status)
    answered.open()
    expect(await second).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: false })
    expect(await effects()).toEqual(['e1'])
  })

  test('after `maxRunMs` the run is over: its transaction is refused, and `idle` does not wait for it', async () => {
    const { serve, store, insert, effects, errors } = await at()
    const [started, goOn] = [gate(), gate()]
    const post = await serve(
      async (_req, res, context) => {
        started.open()
        await goOn.opened
        await store.transaction(context, async (tx) => {
          await insert(tx)
          res.status(201).json({})
        })
      },
      { leaseMs: 400, maxRunMs: 400, storeTimeoutMs: 100 },
    )
    const told = post()
    await started.opened
    await post.idle()
    goOn.open()
    expect(await told).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ code: 'transaction_timed_out' }])
    expect(await effects()).toEqual([])
  })

  test('a store that does not answer the fence lets no failure out', async () => {
    const { serve, database, url, application } = await at()
    const { startFaultProxy } = await import('../../../support/fault-proxy.js')
    const proxy = await startFaultProxy(database.port)
    const commands = openPool(url.replace(`:${database.port}`, `:${proxy.port}`))
    const store = storeOn({ pool: commands, transactions: application })
    const post = await serve(
      async (_req, res) => {
        proxy.cut()
        res.status(402).json({})
      },
      { store },
    )
    expect(await post()).toMatchObject({ status: 503, body: { code: 'store_unavailable' } })
    await commands.end()
    await proxy.close()
  })

  test.each<[string, (context: IdempotencyContext) => unknown]>([
    ['step', async (context) => (await at()).store.step(context, 'reserve', () => {})],
    ['context.step', (context) => context.step('charge', () => 1)],
    ['completeIn', async (context) => (await at()).store.completeIn({} as never, context, { status: 201 })],
    ['mayHaveEffect', (context) => context.mayHaveEffect()],
  ])('%s is misuse', async (name, misuse) => {
    const { serve, errors, record } = await at()
    const post = await serve(async (_req, _res, context) => void (await misuse(context)))
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([
      { code: 'effects_in_transaction', message: expect.stringContaining(name.replace('context.', '')) },
    ])
    expect(await record()).toBeNull()
  })

  test('nothing is streamed: a large failure is sent whole, and a streamed success is withheld', async () => {
    const { serve } = await at()
    const post = await serve(
      async (req, res) => {
        res.status(req.body.amount)
        res.flushHeaders()
        for (let i = 0; i < 4; i++) res.write('x'.repeat(1_000))
        res.end()
      },
      { maxAnswerBytes: 1_000 },
    )
    expect(await post({ amount: 503 })).toMatchObject({ status: 503, body: { text: 'x'.repeat(4_000) } })
    expect(await post({ amount: 200 })).toMatchObject({ status: 500, body: { code: 'transaction_missing' } })
  })
})
