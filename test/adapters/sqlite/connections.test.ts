import { copyFileSync, cpSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { runNode } from '../../support/run-node.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { COMMANDS, WRITES } from './commands.js'
import { DRIVER_NAMES } from './drivers.js'
import { openStore } from './open-store.js'
import { insert, served } from './served.js'

describe.each(DRIVER_NAMES)('on %s', (driver) => {
  describe('a transaction of the application’s on the connection', () => {
    test.each(Object.entries(COMMANDS))('is not joined by %s, which fails at once', async (_name, send) => {
      const { database, store, query } = openStore(driver)
      database.exec('CREATE TABLE payouts (id TEXT)')
      await store.migrate()
      database.exec("BEGIN; INSERT INTO payouts VALUES ('p1')")
      await expect(send(store)).rejects.toMatchObject({ name: 'SqliteStoreError', code: 'connection_in_use' })
      database.exec('COMMIT')
      expect(query('SELECT id FROM payouts')).toHaveLength(1)
      expect(query('SELECT * FROM once_per_key_records')).toEqual([])
      await send(store)
    })

    test('is seen before there are tables, and in any mode of the journal', async () => {
      const { database, store } = openStore(driver)
      database.exec('CREATE TABLE payouts (id TEXT); SAVEPOINT s; INSERT INTO payouts VALUES (1)')
      await expect(store.begin('k', claimOf('t1'))).rejects.toMatchObject({ code: 'connection_in_use' })
      database.exec('ROLLBACK TO s; RELEASE s')
      expect(await store.begin('k', claimOf('t1'))).toMatchObject({ acquired: true })
    })
  })

  test('an iterator that the work has left open keeps no transaction open once it has ended', async () => {
    const { database, store, serve, post, effects } = await served(driver)
    let left: Iterator<unknown> | undefined
    await serve(async (res, context) => {
      await store.transaction(context, (tx) => {
        insert(tx, `e${left}`)
        left ??= (tx.prepare('SELECT 1 UNION SELECT 2') as unknown as Iterated).iterate()
        left.next()
        res.status(201).json({})
      })
    })
    const { status } = await post()
    left?.return?.()
    await store.migrate()
    insert(database, 'own')
    expect(effects()).toEqual(status === 201 ? ['eundefined', 'own'] : ['own'])
    expect(database.prepare('PRAGMA busy_timeout').get()).toMatchObject({ timeout: BUSY_TIMEOUTS[driver] })
  })

  test.each<[string, (file: string) => void]>([
    ['moved', (file) => renameSync(file, `${file}.old`)],
    ['removed', (file) => rmSync(file)],
    ['replaced', (file) => [copyFileSync(file, `${file}.new`), renameSync(`${file}.new`, file)]],
  ])('a file that was %s while it is open is written no more', async (_how, change) => {
    const { file, store } = openStore(driver)
    await store.begin('k', claimOf('t1'))
    change(file)
    const refusal = { code: 'database_unsuitable', message: expect.stringContaining('moved, replaced or removed') }
    await expect(store.begin('k2', claimOf('t1'))).rejects.toMatchObject(refusal)
  })

  test('a `-wal` file that was removed while it is open is written no more: what is in it has no name', async () => {
    const { file, store } = openStore(driver)
    await store.begin('k', claimOf('t1'))
    rmSync(`${file}-wal`)
    const refusal = { code: 'database_unsuitable', message: expect.stringContaining('-wal file was removed') }
    await expect(store.complete('k', { ...ownOf('t1'), answer: ANSWER })).rejects.toMatchObject(refusal)
  })

  test('nor is one that another process has removed, since this one has copied the folder for a backup', async () => {
    const { file, store } = openStore(driver)
    await store.begin('k', claimOf('t1'))
    cpSync(dirname(file), `${dirname(file)}-copy`, { recursive: true })
    onTestFinished(() => rmSync(`${dirname(file)}-copy`, { recursive: true }))
    await readElsewhere(file)
    await expect(store.begin('k2', claimOf('t1'))).rejects.toMatchObject({ code: 'database_unsuitable' })
  })

  test('one that the application has made anew, since it changed the mode of the journal, is', async () => {
    const { database, store } = openStore(driver)
    await store.begin('k', claimOf('t1'))
    database.exec('PRAGMA journal_mode = DELETE')
    expect(await store.begin('k2', claimOf('t1'))).toMatchObject({ acquired: true })
    expect(await store.begin('k3', claimOf('t1'))).toMatchObject({ acquired: true })
  })

  describe('another connection that writes', () => {
    test('is waited for by a timer: the process goes on, and the command is done behind it', async () => {
      const { store, connect, query } = openStore(driver)
      await store.migrate()
      const other = connect()
      other.exec('BEGIN IMMEDIATE')
      const begun = store.begin('k', claimOf('t1'))
      // While it waits, timers have their turn: it is by one of them that the other one ends.
      await new Promise((resolve) => setTimeout(resolve, 60))
      expect(query('SELECT * FROM once_per_key_records')).toEqual([])
      other.exec('COMMIT')
      expect(await begun).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
    })

    test('is waited for in the order of the commands', async () => {
      const { store, connect } = openStore(driver)
      await store.migrate()
      const other = connect()
      other.exec('BEGIN IMMEDIATE')
      const order: string[] = []
      const claim = async (token: string) => {
        const { acquired } = await store.begin('k', claimOf(token))
        order.push(`${token} ${acquired}`)
      }
      const all = ['t1', 't2', 't3'].map(claim)
      other.exec('ROLLBACK')
      // The file is free, but others were there before.
      all.push(claim('t4'))
      await Promise.all(all)
      expect(order).toEqual(['t1 true', 't2 false', 't3 false', 't4 false'])
    })

    test('makes claims late, which are not run when their turn comes; what has run is', async () => {
      const { store, connect, query } = openStore(driver)
      await store.begin('k', claimOf('t1'))
      const other = connect()
      other.exec('BEGIN IMMEDIATE')
      const renewed = store.renew('k', { ...ownOf('t1'), leaseMs: 30_000 })
      const claims = Array.from({ length: 20 }, (_, i) => store.begin(`late ${i}`, claimOf('t1')))
      const late = [...claims, store.release('never claimed', { ...ownOf('t2'), failedMs: 60_000 })]
      const completed = store.complete('k', { ...ownOf('t1'), answer: ANSWER })
      other.exec('ROLLBACK')
      const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1_500)
      onTestFinished(() => clock.mockRestore())
      const told = { code: 'database_busy', message: expect.stringContaining('was not run') }
      await Promise.all(late.map((command) => expect(command).rejects.toMatchObject(told)))
      expect(await Promise.all([renewed, completed])).toEqual([{ ok: true }, { ok: true }])
      expect(query('SELECT key FROM once_per_key_records')).toEqual([{ key: 'k' }])
    })

    test.each(Object.entries(WRITES))('for longer than the store may wait is a failure of %s', async (_name, send) => {
      const { store, storeOn, connect, query } = openStore(driver)
      await store.migrate()
      const impatient = storeOn({ busyTimeoutMs: 30 })
      const other = connect()
      other.exec('BEGIN IMMEDIATE')
      const startedAt = performance.now()
      await expect(Promise.all([send(impatient), send(impatient)])).rejects.toMatchObject({ code: 'database_busy' })
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(29)
      other.exec('COMMIT')
      expect(query('SELECT * FROM once_per_key_records')).toEqual([])
      await send(impatient)
    })

    test('is nothing to those who read', async () => {
      const { store, connect } = openStore(driver)
      await store.begin('k', claimOf('t1'))
      connect().exec('BEGIN IMMEDIATE; DELETE FROM once_per_key_records')
      expect(await store.inspect('k')).toMatchObject({ state: 'in-flight' })
      expect(await store.list(null)).toEqual({ records: [], next: null })
    })

    test('is waited for by the application’s own statements as long as it has said', async () => {
      const { database, store, connect } = openStore(driver, { busyTimeoutMs: 20 })
      await store.migrate()
      database.exec('PRAGMA busy_timeout = 4321')
      const other = connect()
      await store.begin('k', claimOf('t1'))
      other.exec('BEGIN IMMEDIATE')
      await expect(store.begin('k', claimOf('t1'))).rejects.toMatchObject({ code: 'database_busy' })
      expect(database.prepare('PRAGMA busy_timeout').get()).toMatchObject({ timeout: 4_321 })
    })
  })

  test('a command that waits keeps no process alive', async () => {
    const { store, connect } = openStore(driver)
    await store.migrate()
    const other = connect()
    other.exec('BEGIN IMMEDIATE')
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const before = timers()
    const begun = store.begin('k', claimOf('t1'))
    expect(timers()).toBe(before)
    other.exec('COMMIT')
    await begun
  })
})

interface Iterated {
  iterate(): Iterator<unknown>
}

/** As the drivers open a database. */
const BUSY_TIMEOUTS = { 'node:sqlite': 0, 'better-sqlite3': 5_000, libsql: 0 } as const

const NODE_SQLITE = fileURLToPath(new URL('../../support/node-sqlite.mjs', import.meta.url))

/** As an operator looks at a file. */
async function readElsewhere(file: string): Promise<void> {
  const program = `
    const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
    const database = new DatabaseSync(process.argv[1])
    database.prepare('SELECT count(*) FROM once_per_key_records').get()
    database.close()`
  const run = await runNode('--no-warnings', '--import', NODE_SQLITE, '-e', program, file)
  expect(run).toMatchObject({ exitCode: 0, stderr: '' })
}
