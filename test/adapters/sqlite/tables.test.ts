import type { SqliteStore } from 'once-per-key/sqlite'
import { describe, expect, test } from 'vitest'
import { claimOf } from '../claims.js'
import { COMMANDS } from './commands.js'
import { DRIVER_NAMES } from './drivers.js'
import { openStore } from './open-store.js'

describe.each(DRIVER_NAMES)('on %s', (driver) => {
  describe('the tables', () => {
    test('take nothing that is the application’s: neither its version nor its other tables', async () => {
      const { database, store, query } = openStore(driver)
      database.exec('PRAGMA user_version = 7; PRAGMA application_id = 9; CREATE TABLE records (id TEXT)')
      await store.begin('k', claimOf('t1'))
      expect(query('PRAGMA user_version')).toMatchObject([{ user_version: 7 }])
      expect(query('PRAGMA application_id')).toMatchObject([{ application_id: 9 }])
      expect(query('SELECT * FROM records')).toEqual([])
    })

    test('of two prefixes hold records of their own; of the same one, the same', async () => {
      const { store, storeOn } = openStore(driver)
      const other = storeOn({ prefix: 'payouts_' })
      expect(await store.begin('k', claimOf('t1'))).toMatchObject({ acquired: true })
      expect(await other.begin('k', claimOf('t2'))).toMatchObject({ acquired: true })
      expect(await storeOn({ prefix: 'payouts_' }).begin('k', claimOf('t3'))).toMatchObject({ acquired: false })
    })

    test.each([
      ['of a later version', 'UPDATE once_per_key_schema SET version = 2'],
      ['that say no version', 'DELETE FROM once_per_key_schema'],
      ['that say another thing', 'DROP TABLE once_per_key_schema; CREATE TABLE once_per_key_schema (name TEXT)'],
      ['of something else', 'DROP TABLE once_per_key_schema'],
    ])('%s are a clear error, and stay as they are', async (_name, sql) => {
      const { database, store, storeOn, query } = openStore(driver)
      await store.begin('k', claimOf('t1'))
      database.exec(sql)
      const before = query('SELECT * FROM sqlite_schema')
      const later = storeOn()
      for (const send of [...Object.values(COMMANDS), (each: SqliteStore) => each.migrate()]) {
        await expect(send(later)).rejects.toMatchObject({ code: 'schema_unknown' })
      }
      expect(query('SELECT * FROM sqlite_schema')).toEqual(before)
    })

    test('are found in the file that was opened, not in one that is attached to it or in memory', async () => {
      const { database, store, query } = openStore(driver)
      await store.begin('k', claimOf('t1'))
      database.exec('CREATE TEMP TABLE once_per_key_records (id TEXT)')
      expect(await store.begin('k', claimOf('t2'))).toMatchObject({ acquired: false })
      expect(query('SELECT key FROM once_per_key_records')).toHaveLength(1)
    })
  })
})
