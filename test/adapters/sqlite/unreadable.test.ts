import { describe, expect, test } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { COMMANDS } from './commands.js'
import { DRIVER_NAMES } from './drivers.js'
import { openStore } from './open-store.js'

describe.each(DRIVER_NAMES)('on %s', (driver) => {
  describe('a record that cannot be read', () => {
    const DAMAGES = {
      'of a later format': 'format = 2',
      'of a later format and state': "format = 2, state = 'paused', lease_until = NULL",
      'without a head': "head = 'no JSON'",
      'with a head of another form': "head = '[1, {}]'",
    }

    test.each(Object.entries(DAMAGES))('%s is a failure of each command, and never absent', async (_name, damage) => {
      const { database, store, query } = openStore(driver)
      await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
      database.exec(`UPDATE once_per_key_records SET ${damage}`)
      const before = query('SELECT * FROM once_per_key_records')
      for (const [name, send] of Object.entries(COMMANDS)) {
        if (name === 'list') continue
        await expect(send(store), name).rejects.toMatchObject({ code: 'record_unreadable' })
      }
      expect(await store.list(null)).toMatchObject({ records: [], next: null })
      expect(query('SELECT * FROM once_per_key_records')).toEqual(before)
    })

    test('is named apart where the others are listed', async () => {
      const { database, store } = openStore(driver)
      await store.complete('acme:a', { ...ownOf('t1'), answer: { ...ANSWER, body: null } })
      await store.begin('acme:b', claimOf('t1'))
      database.exec("UPDATE once_per_key_records SET head = 'no JSON' WHERE key = 'acme:a'")
      expect(await store.listScope('acme', null)).toMatchObject({
        records: [{ key: 'acme:b' }],
        unreadable: ['acme:a'],
      })
    })

    test.each(['attempt', 'lease_until', 'expires_at'])(
      'nor does %s hide them, if it is larger than a number can be',
      async (column) => {
        let now = 1
        const { database, store } = openStore(driver, { now: () => now })
        for (const key of ['acme:a', 'acme:b', 'acme:c']) await store.begin(key, claimOf('t1'))
        database.exec(`UPDATE once_per_key_records SET ${column} = 9007199254740993 WHERE key = 'acme:b'`)
        now += claimOf('t1').leaseMs
        const named = { records: [{ key: 'acme:a' }, { key: 'acme:c' }], unreadable: ['acme:b'], next: null }
        expect(await store.list(null)).toMatchObject(named)
        expect(await store.listScope('acme', null)).toMatchObject(named)
        await expect(store.begin('acme:b', claimOf('t2'))).rejects.toMatchObject({ code: 'record_unreadable' })
        expect(await store.begin('acme:c', claimOf('t2'))).toMatchObject({ acquired: true })
      },
    )

    test('says nothing of what it holds', async () => {
      const { database, store } = openStore(driver)
      await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
      database.exec("UPDATE once_per_key_records SET head = '[secret'")
      const error = await store.begin('k', claimOf('t2')).then(undefined, (reason: Error) => reason)
      expect(`${(error as Error).message} ${(error as Error).cause}`).not.toContain('secret')
    })

    test('is none any more once its time is over', async () => {
      let now = 1
      const { database, store } = openStore(driver, { now: () => now })
      await store.complete('k', { ...ownOf('t1'), answer: ANSWER })
      database.exec("UPDATE once_per_key_records SET format = 2, state = 'paused'")
      now += ownOf('t1').retentionMs
      expect(await store.begin('k', claimOf('t2'))).toEqual({ acquired: true, attempt: 1, previousOutcome: 'none' })
    })

    test('is not written: the table takes no row of format 1 that is none', async () => {
      const { database, store } = openStore(driver)
      await store.begin('k', claimOf('t1'))
      for (const damage of ["state = 'paused'", 'lease_until = NULL', 'fingerprint = NULL', "expires_at = 'soon'"]) {
        expect(() => database.exec(`UPDATE once_per_key_records SET ${damage}`), damage).toThrow()
      }
    })
  })
})
