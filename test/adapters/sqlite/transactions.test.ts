import { describe, expect, test, vi } from 'vitest'
import { DRIVER_NAMES } from './drivers.js'
import { insert, served } from './served.js'

describe.each(DRIVER_NAMES)('a transaction on %s', (driver) => {
  test('commits effects and record together, and the answer leaves behind its COMMIT', async () => {
    const { store, serve, post, query, effects, types } = await served(driver)
    const seenInside: unknown[] = []
    await serve(async (res, context) => {
      const value = await store.transaction(context, (tx) => {
        insert(tx)
        res.status(201).json({ id: 'e1' })
        seenInside.push(...query('SELECT id FROM effects'), ...query('SELECT state FROM once_per_key_records'))
        return 7
      })
      expect(value).toBe(7)
    })
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: null })
    expect(seenInside.map((row) => ({ ...(row as object) }))).toEqual([{ state: 'in-flight' }])
    expect(effects()).toEqual(['e1'])
    expect(await post()).toMatchObject({ status: 201, body: { id: 'e1' }, replayed: 'true' })
    expect(types()).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('that throws leaves nothing behind: the response is as it was, and the error page is sent', async () => {
    const { store, serve, post, effects, record } = await served(driver)
    await serve(async (res, context) => {
      res.setHeader('X-Extra', 'kept')
      await store.transaction(context, (tx) => {
        insert(tx)
        res.setHeader('X-Extra', 'dropped')
        res.status(201).json({ id: 'e1' })
        throw Object.assign(new Error('no'), { status: 503 })
      })
    })
    expect(await post()).toEqual({ status: 503, body: { failed: true }, replayed: null, extra: 'kept' })
    expect(effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('that was rolled back can be followed by another', async () => {
    const { store, serve, post, effects } = await served(driver)
    await serve(async (res, context) => {
      const first = store.transaction(context, (tx) => {
        insert(tx)
        res.status(200).json({ from: 1 })
        throw new Error('no')
      })
      await expect(first).rejects.toThrow('no')
      expect([res.headersSent, res.writableEnded, res.statusCode]).toEqual([false, false, 200])
      await store.transaction(context, (tx) => {
        insert(tx, 'e2')
        res.status(201).json({ from: 2 })
      })
    })
    expect(await post()).toMatchObject({ status: 201, body: { from: 2 } })
    expect(effects()).toEqual(['e2'])
    expect(await post()).toMatchObject({ status: 201, body: { from: 2 }, replayed: 'true' })
  })

  test('in which nothing is written is rolled back, unless that is allowed', async () => {
    const { store, serve, post, errors, record } = await served(driver)
    await serve(async (res, context) => {
      const options = context.attempt === 1 ? undefined : { allowEmpty: true }
      const work = (tx: Parameters<typeof insert>[0]) => {
        tx.prepare("UPDATE effects SET id = 'e2' WHERE id = 'e1'").run()
        res.status(201).json({ id: null })
      }
      await store.transaction(context, work, options)
    })
    expect(await post()).toMatchObject({ status: 500, body: { failed: true } })
    expect(errors).toMatchObject([{ code: 'nothing_written', message: expect.stringContaining('allowEmpty: true') }])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
    expect(await post()).toMatchObject({ status: 201, replayed: null })
    expect(await post()).toMatchObject({ status: 201, replayed: 'true' })
  })

  test('whose answer is a failure is rolled back, and the answer is sent', async () => {
    const { store, serve, post, effects, errors, record } = await served(driver)
    await serve(async (res, context) => {
      const value = await store.transaction(context, (tx) => {
        insert(tx)
        res.status(422).json({ declined: true })
        return 'declined'
      })
      expect(value).toBe('declined')
    })
    expect(await post()).toMatchObject({ status: 422, body: { declined: true } })
    expect(effects()).toEqual([])
    expect(await record()).toMatchObject({ state: 'failed', uncertain: false })
    expect(errors).toEqual([])
  })

  test('without an answer is misuse, and rolled back', async () => {
    const { store, serve, post, effects, errors } = await served(driver)
    await serve(async (res, context) => {
      await store.transaction(context, (tx) => insert(tx))
      res.status(201).json({})
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ code: 'transaction_unanswered' }])
    expect(effects()).toEqual([])
  })

  test('whose work returns a promise is misuse, and rolled back', async () => {
    const { store, serve, post, effects, errors } = await served(driver)
    await serve(async (res, context) => {
      const later = (async (tx: Parameters<typeof insert>[0]) => {
        insert(tx)
        res.status(201).json({})
      }) as unknown as (tx: unknown) => void
      await store.transaction(context, later)
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ code: 'transaction_asynchronous' }])
    expect(effects()).toEqual([])
  })

  describe('whose record', () => {
    const cases = [
      ['is another attempt’s', "UPDATE once_per_key_records SET token = 'other', attempt = 2", 'record_taken', 409],
      ['is gone', 'DELETE FROM once_per_key_records', 'record_absent', 500],
      ['has expired', 'UPDATE once_per_key_records SET expires_at = 1', 'record_absent', 500],
      [
        'has ended',
        "UPDATE once_per_key_records SET state = 'failed', fingerprint = NULL, lease_until = NULL",
        'record_ended',
        500,
      ],
    ] as const
    test.each(cases)('%s by then is rolled back', async (_name, sql, code, status) => {
      const { store, connect, serve, post, effects, errors } = await served(driver)
      const other = connect()
      await serve(async (res, context) => {
        other.exec(sql)
        await store.transaction(context, (tx) => {
          insert(tx)
          res.status(201).json({})
        })
      })
      expect(await post()).toMatchObject({ status })
      expect(errors).toMatchObject([{ name: 'SqliteStoreError', code }])
      expect(effects()).toEqual([])
    })
  })

  describe('that is not the store’s any more', () => {
    test.each([
      ['the work has committed it', 'COMMIT'],
      ['the work has rolled it back', 'ROLLBACK'],
      ['the work has begun another', 'ROLLBACK; BEGIN'],
      ['a statement has undone it', "INSERT OR ROLLBACK INTO effects VALUES ('e0')"],
    ])('since %s completes nothing', async (_name, sql) => {
      const { database, store, serve, post, effects, errors, record } = await served(driver)
      insert(database, 'e0')
      await serve(async (res, context) => {
        await store.transaction(context, (tx) => {
          try {
            tx.exec(sql)
          } catch {} // The statement's own error is no reason to stop for this handler.
          res.status(201).json({})
        })
      })
      expect(await post()).toMatchObject({ status: 500 })
      expect(errors).toMatchObject([{ code: 'transaction_unmarked' }])
      expect(effects()).toEqual(['e0'])
      expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
      // The connection is free again.
      await store.migrate()
    })
  })

  test('that a deferred constraint undoes at COMMIT is rolled back, with the database’s own error', async () => {
    const { database, store, serve, post, effects, errors } = await served(driver)
    database.exec(
      'PRAGMA foreign_keys = ON; CREATE TABLE parts (id TEXT REFERENCES effects (id) DEFERRABLE INITIALLY DEFERRED)',
    )
    await serve(async (res, context) => {
      await store.transaction(context, (tx) => {
        insert(tx)
        tx.exec("INSERT INTO parts VALUES ('nowhere')")
        res.status(201).json({})
      })
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ message: expect.stringContaining('FOREIGN KEY constraint failed') }])
    expect(effects()).toEqual([])
    await store.migrate()
  })

  test('waits for another connection that writes, and its work is run once', async () => {
    const { store, connect, serve, post, effects } = await served(driver)
    const other = connect()
    let runs = 0
    await serve(async (res, context) => {
      other.exec('BEGIN IMMEDIATE')
      const paid = store.transaction(context, (tx) => {
        runs++
        insert(tx)
        res.status(201).json({})
      })
      await new Promise((resolve) => setTimeout(resolve, 40))
      expect(runs).toBe(0)
      other.exec('COMMIT')
      await paid
    })
    expect(await post()).toMatchObject({ status: 201 })
    expect([runs, effects()]).toEqual([1, ['e1']])
  })

  test('that does not begin in time, or meets one of the application’s, rejects, and the run goes on', async () => {
    const { database, store, connect, serve, post, effects } = await served(driver, { busyTimeoutMs: 20 })
    const other = connect()
    await serve(async (res, context) => {
      const pay = () =>
        store.transaction(context, (tx) => {
          insert(tx)
          res.status(201).json({})
        })
      other.exec('BEGIN IMMEDIATE')
      await expect(pay()).rejects.toMatchObject({ code: 'database_busy' })
      other.exec('COMMIT')
      database.exec('BEGIN')
      await expect(pay()).rejects.toMatchObject({ code: 'connection_in_use' })
      database.exec('COMMIT')
      await pay()
    })
    expect(await post()).toMatchObject({ status: 201 })
    expect(effects()).toEqual(['e1'])
  })

  test('whose work writes over another connection, and meets the transaction’s own lock, is not run again', async () => {
    const { store, connect, serve, post, effects, errors } = await served(driver)
    const other = connect()
    other.exec('PRAGMA busy_timeout = 0')
    let runs = 0
    await serve(async (res, context) => {
      await store.transaction(context, (tx) => {
        runs++
        insert(tx)
        insert(other, 'e2')
        res.status(201).json({})
      })
    })
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([{ message: 'database is locked' }])
    expect([runs, effects()]).toEqual([1, []])
  })

  test.each([
    ['without a context', 'context_missing'],
    ['of another store', 'context_foreign'],
    ['beside another', 'transaction_nested'],
    ['behind one that committed', 'transaction_committed'],
  ])('%s is misuse', async (name, code) => {
    const { store, storeOn, serve, post, effects } = await served(driver)
    const seen: unknown[] = []
    await serve(async (res, context) => {
      const run = (over: typeof store, given: typeof context | undefined, id: string) =>
        over
          .transaction(given, (tx) => {
            insert(tx, id)
            res.status(201).json({})
          })
          .catch((error: { code: unknown }) => void seen.push(error.code))
      if (name === 'without a context') await run(store, undefined, 'misused')
      if (name === 'of another store') await run(storeOn(), context, 'misused')
      const first = run(store, context, 'e1')
      if (name === 'beside another') await run(store, context, 'misused')
      await first
      if (name === 'behind one that committed') await run(store, context, 'misused')
    })
    expect(await post()).toMatchObject({ status: 201 })
    expect(seen).toEqual([code])
    expect(effects()).toEqual(['e1'])
  })

  describe('a step', () => {
    test('commits what it wrote, and the record is in flight and uncertain', async () => {
      const { store, serve, post, effects, record } = await served(driver)
      const seen: unknown[] = []
      await serve(async (res, context) => {
        const value = await store.step(context, 'reserve', (tx) => {
          insert(tx, 'reserved')
          return 7
        })
        seen.push(value, await record(), effects())
        await store.step(context, 'send', (tx) => void insert(tx, 'sent'))
        await store.transaction(context, (tx) => {
          insert(tx)
          res.status(201).json({})
        })
      })
      expect(await post()).toMatchObject({ status: 201 })
      expect(seen).toMatchObject([7, { state: 'in-flight', uncertain: true }, ['reserved']])
      expect(effects()).toEqual(['e1', 'reserved', 'sent'])
      expect(await record()).toMatchObject({ state: 'completed' })
    })

    test('makes a failure of the run leave its outcome unknown, whatever the handler answers', async () => {
      const { store, serve, post, effects, record } = await served(driver)
      await serve(async (res, context) => {
        await store.step(context, 'reserve', (tx) => void insert(tx))
        res.status(422).json({})
      })
      expect(await post()).toMatchObject({ status: 422 })
      expect(effects()).toEqual(['e1'])
      expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
    })

    test.each<[string, boolean, number, string[]]>([
      ['is sent behind its COMMIT', false, 201, ['e1']],
      ['is withheld where it was rolled back', true, 503, []],
    ])('with an answer inside: that %s', async (_what, throws, status, left) => {
      const { store, serve, post, effects } = await served(driver)
      await serve(async (res, context) => {
        const step = store.step(context, 'reserve', (tx) => {
          insert(tx)
          res.status(201).json({})
          if (throws) throw new Error('no')
        })
        await step.catch(() => {})
      })
      expect(await post()).toMatchObject({ status })
      expect(effects()).toEqual(left)
    })

    test.each([
      ['committed', false],
      ['rolled back', true],
    ])('with a failure inside, and %s: its record is released before that is sent', async (_how, throws) => {
      const { store, serve, post, record } = await served(driver)
      const order: string[] = []
      const release = store.release.bind(store)
      vi.spyOn(store, 'release').mockImplementation(async (...given) => {
        const reply = await release(...given)
        await new Promise((resolve) => setTimeout(resolve, 50)) // A response that does not wait for it leaves meanwhile.
        order.push('released')
        return reply
      })
      await serve(async (res, context) => {
        res.on('finish', () => order.push('sent'))
        const step = store.step(context, 'reserve', (tx) => {
          insert(tx)
          res.status(422).json({})
          if (throws) throw new Error('no')
        })
        await step.catch(() => {})
      })
      expect(await post()).toMatchObject({ status: 422 })
      expect(order).toEqual(['released', 'sent'])
      expect(await record()).toMatchObject({ state: 'failed', uncertain: !throws })
    })

    test('of an attempt that does not own the record commits nothing', async () => {
      const { store, connect, serve, post, effects, errors } = await served(driver)
      const other = connect()
      await serve(async (_res, context) => {
        other.exec("UPDATE once_per_key_records SET token = 'other', attempt = 2")
        await store.step(context, 'reserve', (tx) => void insert(tx))
      })
      expect(await post()).toMatchObject({ status: 409 })
      expect(errors).toMatchObject([{ code: 'record_taken' }])
      expect(effects()).toEqual([])
    })

    test('that throws, or returns a promise, commits nothing, and says nothing of an effect', async () => {
      const { store, serve, post, effects, record } = await served(driver)
      await serve(async (res, context) => {
        const thrown = store.step(context, 'reserve', (tx) => {
          insert(tx)
          throw new Error('no')
        })
        await expect(thrown).rejects.toThrow('no')
        const later = (async (tx: Parameters<typeof insert>[0]) => insert(tx)) as unknown as (tx: unknown) => void
        await expect(store.step(context, 'reserve', later)).rejects.toMatchObject({ code: 'transaction_asynchronous' })
        res.status(422).json({})
      })
      expect(await post()).toMatchObject({ status: 422 })
      expect(effects()).toEqual([])
      expect(await record()).toMatchObject({ state: 'failed', uncertain: false })
    })
  })
})
