import { closeSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { SqliteStore } from 'once-per-key/sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { COMMANDS, WRITES } from './commands.js'
import { DRIVER_NAMES, openDatabase } from './drivers.js'
import { newFolder, openStore } from './open-store.js'

describe.each(DRIVER_NAMES)('on %s', (driver) => {
  test('a database that is full refuses what needs room, and works on when there is some', async () => {
    const { database, store, query } = openStore(driver)
    await store.begin('k', claimOf('t1'))
    const [{ page_count: pages } = {}] = query('PRAGMA page_count')
    database.exec(`PRAGMA max_page_count = ${pages}`)
    const large = { ...ownOf('t1'), answer: { ...ANSWER, body: new Uint8Array(1_000_000) } }
    await expect(store.complete('k', large)).rejects.toMatchObject({ code: 'database_full' })
    expect(await store.inspect('k')).toMatchObject({ state: 'in-flight' })
    await expect(
      Promise.all(Array.from({ length: 500 }, (_, i) => store.begin(`k${i}`, claimOf('t1')))),
    ).rejects.toMatchObject({ code: 'database_full' })
    expect(await store.renew('k', { ...ownOf('t1'), leaseMs: 30_000 })).toEqual({ ok: true })
    database.exec('PRAGMA max_page_count = 100000')
    expect(await store.complete('k', large)).toEqual({ ok: true })
  })

  // libSQL's driver opens each file to write.
  test.skipIf(driver === 'libsql')('a connection that may only read is a clear error, and still reads', async () => {
    const { store, connect } = openStore(driver)
    await store.begin('k', claimOf('t1'))
    const reader = new SqliteStore({ database: connect({ readOnly: true }) })
    expect(await reader.inspect('k')).toMatchObject({ state: 'in-flight' })
    for (const send of Object.values(WRITES)) {
      await expect(send(reader)).rejects.toMatchObject({ code: 'read_only' })
    }
    expect(await store.renew('k', { ...ownOf('t1'), leaseMs: 30_000 })).toEqual({ ok: true })
  })

  test('a connection that was made to read alone is a clear error, and no success', async () => {
    const { database, store } = openStore(driver)
    await store.migrate()
    database.exec('PRAGMA query_only = ON')
    await expect(store.begin('k', claimOf('t1'))).rejects.toMatchObject({ code: 'read_only' })
  })

  test('a file that is no database, and one that was overwritten, are clear errors', async () => {
    const { folder, remove } = newFolder()
    onTestFinished(remove)
    writeFileSync(`${folder}/text.db`, 'No database, but a text that is long enough. '.repeat(200))
    const database = openDatabase(driver, `${folder}/text.db`)
    onTestFinished(() => void database.close())
    let seen: unknown
    try {
      await new SqliteStore({ database }).migrate()
    } catch (error) {
      seen = error
    }
    // Which of the two it is, depends on when the driver reads the file for the first time.
    expect(['database_corrupt', 'options_invalid']).toContain((seen as { code: string }).code)
    expect((seen as Error).message).toContain('not a database')
  })

  test('a damaged file is a clear error to each command, and no record is absent', async () => {
    const { file, store, connect, query } = openStore(driver)
    for (let i = 0; i < 300; i++) await store.complete(`k${i}`, { ...ownOf('t1'), answer: ANSWER })
    query('PRAGMA wal_checkpoint(TRUNCATE)')
    const handle = openSync(file, 'r+')
    const { size } = statSync(file)
    for (let at = 2 * 4_096; at < size; at += 4_096) writeSync(handle, new Uint8Array(4_096).fill(0xa5), 0, 4_096, at)
    closeSync(handle)
    const damaged = new SqliteStore({ database: connect() })
    await expect(damaged.begin('k7', claimOf('t2'))).rejects.toMatchObject({ code: 'database_corrupt' })
    await expect(damaged.inspect('k7')).rejects.toMatchObject({ code: 'database_corrupt' })
  })

  test('a connection that was closed is a clear error', async () => {
    const { database, store } = openStore(driver)
    await store.begin('k', claimOf('t1'))
    database.close()
    for (const send of Object.values(COMMANDS)) {
      await expect(send(store)).rejects.toMatchObject({ code: 'database_closed' })
    }
  })

  describe('what makes a commit durable', () => {
    const settings = (database: { prepare(sql: string): { get(): unknown } }) =>
      ['journal_mode', 'synchronous'].map(
        (name) => Object.values(database.prepare(`PRAGMA ${name}`).get() as object)[0],
      )

    test('is set: WAL, and a sync behind each commit, whatever the driver’s default is', async () => {
      const { database, store, connect } = openStore(driver)
      await store.begin('k', claimOf('t1'))
      expect(settings(database)).toEqual(['wal', 2])
      // One of a later process, on a file that is in WAL mode already.
      const later = connect()
      await new SqliteStore({ database: later }).renew('k', { ...ownOf('t1'), leaseMs: 30_000 })
      expect(settings(later)).toEqual(['wal', 2])
    })

    test.each(['OFF', 'NORMAL'])('is set again where the application has made it %s', async (synchronous) => {
      const { database, store } = openStore(driver)
      await store.begin('k', claimOf('t1'))
      database.exec(`PRAGMA synchronous = ${synchronous}; PRAGMA journal_mode = DELETE`)
      expect(settings(database)[0]).toBe('delete')
      await store.renew('k', { ...ownOf('t1'), leaseMs: 30_000 })
      expect(settings(database)).toEqual(['wal', 2])
    })

    test('is set by what writes alone: a look changes nothing of a copy', async () => {
      const { database, file, store } = openStore(driver)
      await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
      database.exec(`VACUUM INTO '${file}.copy'`)
      const copy = openDatabase(driver, `${file}.copy`)
      onTestFinished(() => void copy.close())
      const reader = new SqliteStore({ database: copy })
      const before = readFileSync(`${file}.copy`)
      expect(await reader.inspect('k')).toMatchObject({ state: 'completed' })
      expect((await reader.listScope('k', null)).records).toEqual([])
      expect((await reader.list(null)).records).toEqual([])
      expect([settings(copy)[0], readFileSync(`${file}.copy`).equals(before)]).toEqual(['delete', true])
      await reader.begin('other', claimOf('t2'))
      expect(settings(copy)).toEqual(['wal', 2])
    })

    test('is left as it is where it is more', async () => {
      const { database, store } = openStore(driver)
      await store.begin('k', claimOf('t1'))
      database.exec('PRAGMA synchronous = EXTRA')
      await store.renew('k', { ...ownOf('t1'), leaseMs: 30_000 })
      expect(settings(database)).toEqual(['wal', 3])
    })
  })

  test('the application’s settings for its own statements change nothing', async () => {
    const { database, store } = openStore(driver)
    const setting = database as { defaultSafeIntegers?(on: boolean): void }
    setting.defaultSafeIntegers?.(true)
    await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
    expect(await store.inspect('k')).toMatchObject({ state: 'completed', attempt: 1, answer: { status: 201 } })
    expect(await store.sweep()).toBe(0)
  })

  test('nothing is done before the first command', () => {
    const { file } = openStore(driver)
    expect(statSync(file, { throwIfNoEntry: false })?.size ?? 0).toBe(0)
  })
})
