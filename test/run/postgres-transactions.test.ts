import { CertainFailure, type IdempotencyContext } from 'once-per-key'
import { type RunnerEvent, runner } from 'once-per-key/run'
import type { PoolClient } from 'pg'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openPool, openStore, storeOn } from '../adapters/postgres/open-store.js'
import { startFaultProxy } from '../support/fault-proxy.js'
import { gate } from '../support/gate.js'
import { mustNotRun, OPERATION, rejection } from './runner-on-trial.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { pool, query, url } = await openStore()
const store = storeOn({ pool, transactions: openPool(url) })
await query('CREATE TABLE effects (id text PRIMARY KEY)')
await query('CREATE TABLE singles (id text UNIQUE DEFERRABLE INITIALLY DEFERRED)')

let events: RunnerEvent[]
beforeEach(async () => {
  await query('TRUNCATE once_per_key.records, effects')
  events = []
})

const SETTINGS = { store, name: 'payouts', onEvent: (event: RunnerEvent) => events.push(event) } as const
const once = runner(SETTINGS)
const types = () => events.map(({ type }) => type)
const effects = async () => (await query('SELECT id FROM effects ORDER BY id')).map(({ id }) => id)
const insert = (tx: PoolClient, id = 'e1') => tx.query('INSERT INTO effects VALUES ($1)', [id])

describe('a transaction of a run', () => {
  test('commits effects and record together, and its value is the result', async () => {
    let inside: unknown
    const first = await once(OPERATION, (context) =>
      store.transaction(context, async (tx) => {
        await insert(tx)
        inside = (await once.inspect(OPERATION))?.state
        return { id: 'e1', note: undefined }
      }),
    )
    expect(inside).toBe('in-flight')
    expect(first).toStrictEqual({ id: 'e1' })
    expect(await once(OPERATION, mustNotRun)).toStrictEqual({ id: 'e1' })
    expect(await effects()).toEqual(['e1'])
    expect(types()).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('is what the caller gets, whatever the function returns or throws behind its COMMIT', async () => {
    const returns = await once(OPERATION, async (context) => {
      await store.transaction(context, async (tx) => {
        await insert(tx)
        return 'committed'
      })
      return 'returned'
    })
    expect(returns).toBe('committed')
    const error = new Error('late')
    const other = { ...OPERATION, key: 'job-2' }
    const throws = once(other, async (context): Promise<string> => {
      await store.transaction(context, async (tx) => {
        await insert(tx, 'e2')
        return 'committed'
      })
      throw error
    })
    expect(await rejection(throws)).toBe(error)
    expect(await once(other, mustNotRun)).toBe('committed')
    expect(await effects()).toEqual(['e1', 'e2'])
  })

  test('that resolves with nothing has no result, and is committed', async () => {
    const work = (context: IdempotencyContext) => store.transaction(context, async (tx) => void (await insert(tx)))
    expect(await once(OPERATION, work)).toBeUndefined()
    expect(await once(OPERATION, mustNotRun)).toBeUndefined()
    expect(await effects()).toEqual(['e1'])
  })

  test('whose value cannot be kept is committed without it: the caller has it', async () => {
    const at = new Map([['at', 1]])
    const work = (context: IdempotencyContext) =>
      store.transaction(context, async (tx) => {
        await insert(tx)
        return at as unknown as string
      })
    expect(await once(OPERATION, work)).toBe(at)
    expect(await rejection(once(OPERATION, mustNotRun))).toMatchObject({ code: 'answer_not_kept' })
    expect(await effects()).toEqual(['e1'])
  })

  test('that throws leaves nothing behind, and its error is the caller’s', async () => {
    const error = new CertainFailure('declined')
    const work = (context: IdempotencyContext) =>
      store.transaction(context, async (tx): Promise<string> => {
        await insert(tx)
        throw error
      })
    expect(await rejection(once(OPERATION, work))).toBe(error)
    expect(await effects()).toEqual([])
    expect(await once.inspect(OPERATION)).toMatchObject({ state: 'failed', uncertain: false })
  })

  test('that was rolled back at its COMMIT can be followed by another, or by none', async () => {
    const failing = (context: IdempotencyContext) =>
      store
        .transaction(context, async (tx) => {
          await insert(tx)
          await tx.query("INSERT INTO singles VALUES ('x'), ('x')") // fails at COMMIT
          return 'first'
        })
        .catch(() => {})
    const second = await once(OPERATION, async (context) => {
      await failing(context)
      return store.transaction(context, async (tx) => {
        await insert(tx, 'e2')
        return 'second'
      })
    })
    expect(second).toBe('second')
    expect(await effects()).toEqual(['e2'])
    const other = { ...OPERATION, key: 'job-2' }
    const none = await once(other, async (context) => {
      await failing(context)
      return 'none'
    })
    expect(none).toBe('none')
    expect(await once(other, mustNotRun)).toBe('none')
  })

  test('that nobody awaits is waited for', async () => {
    const first = await once(OPERATION, (context): string => {
      void store.transaction(context, async (tx) => {
        await insert(tx)
        return 'committed'
      })
      return 'returned'
    })
    expect(first).toBe('committed')
    expect(await once(OPERATION, mustNotRun)).toBe('committed')
  })

  test('that nobody awaits, and that is rolled back, is no success', async () => {
    const work = (context: IdempotencyContext): string => {
      store.transaction(context, () => Promise.reject(new Error('no'))).catch(() => {})
      return 'returned'
    }
    expect(await rejection(once(OPERATION, work))).toMatchObject({ code: 'transaction_not_awaited' })
    expect(await once.inspect(OPERATION)).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('of a stale owner is not committed: who took over is the only one', async () => {
    const [stalled, took] = [gate(), gate()]
    const stale = once(OPERATION, (context) =>
      store.transaction(context, async (tx) => {
        await insert(tx, 'stale')
        stalled.open()
        await took.opened
        return 'stale'
      }),
    )
    await stalled.opened
    await query('UPDATE once_per_key.records SET lease_until = 1')
    const heir = await once(OPERATION, (context) =>
      store.transaction(context, async (tx) => {
        await insert(tx, 'heir')
        return context.previousOutcome
      }),
    )
    expect(heir).toBe('unknown')
    took.open()
    expect(await rejection(stale)).toMatchObject({ name: 'PostgresStoreError', code: 'record_taken' })
    expect(await effects()).toEqual(['heir'])
    expect(await once(OPERATION, mustNotRun)).toBe('unknown')
  })

  test('whose session is ended before its COMMIT leaves nothing behind', async () => {
    const work = (context: IdempotencyContext) =>
      store.transaction(context, async (tx) => {
        await insert(tx)
        const { rows } = await tx.query('SELECT pg_backend_pid() AS pid')
        await query('SELECT pg_terminate_backend($1)', [rows[0].pid])
        return 'lost'
      })
    await rejection(once(OPERATION, work))
    expect(await effects()).toEqual([])
    expect(await once(OPERATION, async ({ previousOutcome }) => previousOutcome)).toBe('unknown')
  })

  test('whose COMMIT loses its reply is resolved: the caller gets what was committed', async () => {
    const proxy = await startFaultProxy(Number(new URL(url).port))
    onTestFinished(() => proxy.close())
    const through = new URL(url)
    through.port = String(proxy.port)
    const shaky = openPool(through.href)
    onTestFinished(() => shaky.end())
    const resolving = storeOn({ pool, transactions: shaky })
    const onShaky = runner({ ...SETTINGS, store: resolving })
    let lost: Promise<void> | undefined
    const first = await onShaky(OPERATION, (context) =>
      resolving.transaction(context, async (tx) => {
        await insert(tx)
        lost = proxy.dropReplyTo('COMMIT')
        return 'committed'
      }),
    )
    await lost
    expect(first).toBe('committed')
    expect(await effects()).toEqual(['e1'])
    expect(types()).toContain('completion_pending')
    expect(await once(OPERATION, mustNotRun)).toBe('committed')
  })
})

describe('a step of a run', () => {
  test('commits, and the run goes on', async () => {
    const result = await once(OPERATION, async (context) => {
      await store.step(context, 'reserve', async (tx) => void (await insert(tx, 'reserved')))
      return store.transaction(context, async (tx) => {
        await insert(tx, 'paid')
        return 'done'
      })
    })
    expect(result).toBe('done')
    expect(await effects()).toEqual(['paid', 'reserved'])
  })

  test('leaves the outcome unknown where the run fails behind it', async () => {
    const error = new CertainFailure('declined')
    const work = async (context: IdempotencyContext): Promise<string> => {
      await store.step(context, 'reserve', async (tx) => void (await insert(tx, 'reserved')))
      throw error
    }
    expect(await rejection(once(OPERATION, work))).toBe(error)
    expect(await once.inspect(OPERATION)).toMatchObject({ state: 'failed', uncertain: true })
  })
})

describe('a result that is given by hand', () => {
  async function byHand(end: 'COMMIT' | 'ROLLBACK', result: unknown = { id: 'e1' }) {
    return once(OPERATION, async (context) => {
      const tx = await pool.connect()
      try {
        await tx.query('BEGIN')
        await insert(tx)
        await store.completeIn<unknown>(tx, context, result)
        await tx.query(end)
      } catch (error) {
        await tx.query('ROLLBACK')
        throw error
      } finally {
        tx.release()
      }
      return { other: true }
    })
  }

  test('is what the caller and a repeat get', async () => {
    expect(await byHand('COMMIT')).toEqual({ id: 'e1' })
    expect(await once(OPERATION, mustNotRun)).toEqual({ id: 'e1' })
    expect(await effects()).toEqual(['e1'])
  })

  test('and rolled back leaves the outcome unknown', async () => {
    expect(await rejection(byHand('ROLLBACK'))).toMatchObject({ name: 'RefusedError', code: 'store_unavailable' })
    expect(types()).toContain('transaction_not_committed')
    expect(await once(OPERATION, async ({ previousOutcome }) => previousOutcome)).toBe('unknown')
  })

  test('and cannot be kept is misuse: nothing is committed', async () => {
    expect(await rejection(byHand('COMMIT', Number.NaN))).toMatchObject({ code: 'arguments_invalid' })
    expect(await effects()).toEqual([])
  })
})

test('a context of another store is misuse', async () => {
  const other = storeOn({ pool, transactions: pool })
  const work = (context: IdempotencyContext) => other.transaction(context, () => 1)
  expect(await rejection(once(OPERATION, work))).toMatchObject({ code: 'context_foreign' })
})
