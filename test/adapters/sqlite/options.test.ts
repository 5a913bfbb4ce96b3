import { SqliteStore } from 'once-per-key/sqlite'
import { describe, expect, test } from 'vitest'
import { DRIVER_NAMES, openDatabase } from './drivers.js'

describe.each(DRIVER_NAMES)('on %s', (driver) => {
  describe('the options', () => {
    test.each([
      ['nothing', undefined, 'database: expected an open DatabaseSync'],
      ['no database', {}, 'database: expected an open DatabaseSync'],
      ['the name of a file', { database: 'payments.db' }, 'database: expected an open DatabaseSync'],
      ['a driver that answers later', { database: later() }, 'database: expected an open DatabaseSync'],
      ['a database in memory', { database: openDatabase(driver, ':memory:') }, 'keeps nothing'],
      ['a temporary database', { database: openDatabase(driver, '') }, 'keeps nothing'],
      ['a database that is closed', { database: closedDatabase() }, 'seen: one that failed'],
      ['a prefix that is no name', { prefix: 'x"; --' }, 'prefix: expected letters'],
      ['a prefix of SQLite’s own', { prefix: 'sqlite_x' }, 'prefix: expected letters'],
      ['no duration', { busyTimeoutMs: 1.5 }, 'busyTimeoutMs: expected an integer'],
      ['no clock', { now: 1 }, 'now: expected a function'],
      ['an unknown one', { file: 'payments.db' }, 'file: there is no such option'],
    ])('%s is refused', (_name, options, words) => {
      expect(() => new SqliteStore(options as never)).toThrow(
        expect.objectContaining({ code: 'options_invalid', message: expect.stringContaining(words) }),
      )
    })

    function later() {
      return { exec: async () => {}, prepare: async () => ({ all: async () => [] }) }
    }

    function closedDatabase() {
      const database = openDatabase(driver, ':memory:')
      database.close()
      return database
    }
  })
})
