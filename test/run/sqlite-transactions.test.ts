import { CertainFailure, type IdempotencyContext } from 'once-per-key'
import { type RunnerEvent, runner } from 'once-per-key/run'
import { describe, expect, test } from 'vitest'
import { DRIVER_NAMES, type DriverName } from '../adapters/sqlite/drivers.js'
import { openStore } from '../adapters/sqlite/open-store.js'
import { insert } from '../adapters/sqlite/served.js'
import { gate } from '../support/gate.js'
import { mustNotRun, OPERATION, rejection } from './runner-on-trial.js'

describe.each(DRIVER_NAMES)('on %s, a transaction of a run', (driver) => {
  test('commits effects and record together, and its value is the result', async () => {
    const { once, store, effects, types } = await opened(driver)
    const work = (context: IdempotencyContext) =>
      store.transaction(context, (tx) => {
        insert(tx)
        return { id: 'e1', note: undefined }
      })
    expect(await once(OPERATION, work)).toStrictEqual({ id: 'e1' })
    expect(await once(OPERATION, mustNotRun)).toStrictEqual({ id: 'e1' })
    expect(effects()).toEqual(['e1'])
    expect(types()).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('that resolves with nothing has no result, and is committed', async () => {
    const { once, store, effects } = await opened(driver)
    expect(await once(OPERATION, (context) => store.transaction(context, (tx) => insert(tx)))).toBeUndefined()
    expect(await once(OPERATION, mustNotRun)).toBeUndefined()
    expect(effects()).toEqual(['e1'])
  })

  test('that throws leaves nothing behind, and can be followed by another', async () => {
    const { once, store, effects } = await opened(driver)
    const result = await once(OPERATION, async (context) => {
      const first = store.transaction(context, (tx) => {
        insert(tx)
        throw new CertainFailure('no')
      })
      await expect(first).rejects.toThrow('no')
      return store.transaction(context, (tx) => {
        insert(tx, 'e2')
        return 'second'
      })
    })
    expect(result).toBe('second')
    expect(effects()).toEqual(['e2'])
  })

  test('of a stale owner is not committed: who took over is the only one', async () => {
    const { once, store, effects, connect } = await opened(driver)
    const [stalled, took] = [gate(), gate()]
    const stale = once(OPERATION, async (context) => {
      stalled.open()
      await took.opened
      return store.transaction(context, (tx) => {
        insert(tx, 'stale')
        return 'stale'
      })
    })
    await stalled.opened
    connect().exec('UPDATE once_per_key_records SET lease_until = 1')
    const heir = await once(OPERATION, (context) =>
      store.transaction(context, (tx) => {
        insert(tx, 'heir')
        return context.previousOutcome
      }),
    )
    expect(heir).toBe('unknown')
    took.open()
    expect(await rejection(stale)).toMatchObject({ name: 'SqliteStoreError', code: 'record_taken' })
    expect(effects()).toEqual(['heir'])
    expect(await once(OPERATION, mustNotRun)).toBe('unknown')
  })

  test('follows a step, which makes the outcome unknown until then', async () => {
    const { once, store, effects } = await opened(driver)
    const result = await once(OPERATION, async (context) => {
      await store.step(context, 'reserve', (tx) => void insert(tx, 'reserved'))
      expect(await once.inspect(OPERATION)).toMatchObject({ state: 'in-flight', uncertain: true })
      return store.transaction(context, (tx) => {
        insert(tx, 'paid')
        return 'done'
      })
    })
    expect(result).toBe('done')
    expect(effects()).toEqual(['paid', 'reserved'])
  })

  test('may be opened elsewhere, and be given the result by hand', async () => {
    const { once, store, database, effects } = await opened(driver)
    const result = await once(OPERATION, (context) => {
      database.exec('BEGIN IMMEDIATE')
      insert(database)
      store.completeIn<{ id: string }>(database, context, { id: 'e1' })
      database.exec('COMMIT')
      return { id: 'other' }
    })
    expect(result).toEqual({ id: 'e1' })
    expect(await once(OPERATION, mustNotRun)).toEqual({ id: 'e1' })
    expect(effects()).toEqual(['e1'])
  })
})

async function opened(driver: DriverName) {
  const { database, store, query, connect } = openStore(driver)
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE effects (id TEXT PRIMARY KEY)')
  await store.migrate()
  const events: RunnerEvent[] = []
  return {
    once: runner({ store, name: 'payouts', onEvent: (event) => events.push(event) }),
    store,
    database,
    connect,
    effects: () => query('SELECT id FROM effects ORDER BY id').map(({ id }) => id),
    types: () => events.map(({ type }) => type),
  }
}
