import type { Response } from 'express'
import type { IdempotencyContext } from 'once-per-key'
import { describe, expect, test, vi } from 'vitest'
import { DRIVER_NAMES, openDatabase } from './drivers.js'
import { insert, served } from './served.js'

const ANSWER = { status: 201, body: { id: 'e1' }, headers: { 'X-Extra': 'kept' } }

describe.each(DRIVER_NAMES)('a record that is completed by hand, on %s', (driver) => {
  /** A service whose handler works on the store's connection, or on one of its own to the same file. */
  async function prepared(on: 'the store’s connection' | 'a connection of its own') {
    const service = await served(driver)
    const tx = on === 'the store’s connection' ? service.database : service.connect()
    tx.exec('PRAGMA synchronous = FULL')
    return { ...service, tx }
  }

  describe.each(['the store’s connection', 'a connection of its own'] as const)('on %s', (on) => {
    async function whose(end: 'COMMIT' | 'ROLLBACK', answer: (res: Response) => unknown) {
      const service = await prepared(on)
      await service.serve(async (res, context) => {
        service.tx.exec('BEGIN IMMEDIATE')
        insert(service.tx)
        service.store.completeIn(service.tx, context, ANSWER)
        service.tx.exec(end)
        await answer(res)
      })
      return service
    }

    test('is what is sent, whatever the handler answers', async () => {
      const { post, effects, types } = await whose('COMMIT', (res) => res.status(500).json({ other: true }))
      const answer = { status: 201, body: { id: 'e1' }, extra: 'kept' }
      expect(await post()).toEqual({ ...answer, replayed: null })
      expect(await post()).toEqual({ ...answer, replayed: 'true' })
      expect(effects()).toEqual(['e1'])
      expect(types()).toEqual(['claimed', 'completed', 'replayed'])
    })

    test('and rolled back leaves the outcome unknown, and the client is told to come back', async () => {
      const { post, effects, record, types } = await whose('ROLLBACK', (res) => res.status(201).json({}))
      expect(await post()).toMatchObject({ status: 503, body: { code: 'store_unavailable' } })
      expect(effects()).toEqual([])
      expect(types()).toContain('transaction_not_committed')
      expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
    })
  })

  test('while its transaction is open, is not known to be completed or not', async () => {
    const { tx, store, serve, post } = await prepared('a connection of its own')
    await serve(async (res, context) => {
      tx.exec('BEGIN IMMEDIATE')
      insert(tx)
      store.completeIn(tx, context, ANSWER)
      res.end('early')
      setTimeout(() => tx.exec('COMMIT'), 100)
    })
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' } })
  })

  test('is the run’s own to a renewal that was waiting for its transaction', async () => {
    const { tx, store, serve, post, types } = await prepared('a connection of its own')
    const renew = vi.spyOn(store, 'renew')
    await serve(
      async (res, context) => {
        tx.exec('BEGIN IMMEDIATE')
        insert(tx)
        await vi.waitFor(() => expect(renew).toHaveBeenCalled(), { timeout: 10_000 })
        store.completeIn(tx, context, ANSWER)
        tx.exec('COMMIT')
        expect(await renew.mock.results[0]?.value).toMatchObject({ ok: false, record: { state: 'completed' } })
        await new Promise((resolve) => setImmediate(resolve))
        expect(context.signal.aborted).toBe(false)
        res.end()
      },
      { leaseMs: 1_000, storeTimeoutMs: 250, maxRunMs: 5_000 },
    )
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' } })
    expect(types()).toEqual(['claimed', 'completed'])
  })

  type Service = Awaited<ReturnType<typeof prepared>>
  const REFUSED: Readonly<Record<string, readonly [code: string, (service: Service) => unknown]>> = {
    'outside of a transaction': ['nothing_written', ({ tx }) => insert(tx)],
    'in a transaction that has written nothing': ['nothing_written', ({ tx }) => tx.exec('BEGIN IMMEDIATE')],
    'in a transaction whose COMMIT would not be durable': [
      'database_unsuitable',
      ({ tx }) => {
        tx.exec('PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE')
        insert(tx)
      },
    ],
    'where another attempt owns the record': [
      'record_taken',
      ({ tx }) => tx.exec("BEGIN; UPDATE once_per_key_records SET token = 'other'"),
    ],
    'where there is no record': ['record_absent', ({ tx }) => tx.exec('BEGIN; DELETE FROM once_per_key_records')],
  }

  test.each([
    ...Object.entries(REFUSED).map((each) => ['a connection of its own', ...each] as const),
    [
      'the store’s connection',
      'in a transaction that has written nothing',
      REFUSED['in a transaction that has written nothing'] as (typeof REFUSED)[string],
    ] as const,
  ])('on %s is refused %s', async (on, name, [code, prepare]) => {
    const service = await prepared(on)
    const { tx, store, serve, post, errors, record } = service
    await serve(async (_res, context) => {
      prepare(service)
      try {
        store.completeIn(tx, context, ANSWER)
      } finally {
        if (name !== 'outside of a transaction') tx.exec('ROLLBACK')
      }
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ name: 'SqliteStoreError', code }])
    expect(await record()).toMatchObject({ state: 'failed' })
  })

  test.each(['the store’s connection', 'a connection of its own'] as const)(
    'on %s is accepted where only an earlier transaction has written: SQLite does not tell which one did',
    async (on) => {
      const { tx, store, serve, post, effects } = await prepared(on)
      await serve(async (res, context) => {
        insert(tx)
        tx.exec('DELETE FROM effects; BEGIN IMMEDIATE')
        store.completeIn(tx, context, ANSWER)
        tx.exec('COMMIT')
        res.end()
      })
      expect([await post(), effects()]).toEqual([expect.objectContaining({ status: 201 }), []])
    },
  )

  test('is refused in a transaction of another database', async () => {
    const { file, store, serve, post, errors } = await served(driver)
    const other = openDatabase(driver, `${file}.other`)
    other.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE effects (id TEXT)')
    await serve(async (_res, context) => {
      other.exec('BEGIN')
      insert(other)
      try {
        store.completeIn(other, context, ANSWER)
      } finally {
        other.close()
      }
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ code: 'record_absent' }])
  })

  test.each<[string, string, (context: IdempotencyContext) => [IdempotencyContext | undefined, object]]>([
    ['without a context', 'context_missing', () => [undefined, ANSWER]],
    ['with what is no answer', 'arguments_invalid', (context) => [context, { status: 500 }]],
  ])('%s is misuse', async (_name, code, given) => {
    const { tx, store, serve, post, errors } = await prepared('the store’s connection')
    await serve(async (_res, context) => {
      tx.exec('BEGIN')
      insert(tx)
      const [run, answer] = given(context)
      try {
        store.completeIn(tx, run, answer as typeof ANSWER)
      } finally {
        tx.exec('ROLLBACK')
      }
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ code }])
  })
  test('is misuse inside a transaction of the run, and behind its end', async () => {
    const { tx, store, serve, post } = await prepared('the store’s connection')
    const codes: unknown[] = []
    await serve(async (res, context) => {
      const completeIn = () => {
        try {
          store.completeIn(tx, context, ANSWER)
        } catch (error) {
          codes.push((error as { code?: string }).code)
        }
      }
      await store.transaction(context, () => {
        insert(tx)
        completeIn()
        res.status(201).json({ own: true })
      })
      completeIn()
    })
    expect(await post()).toMatchObject({ status: 201, body: { own: true } })
    expect(codes).toEqual(['transaction_nested', 'transaction_committed'])
  })
})
