import { idempotency } from 'once-per-key'
import { MySqlStore } from 'once-per-key/mysql'
import { PostgresStore } from 'once-per-key/postgres'
import { SqliteStore } from 'once-per-key/sqlite'
import { expect, test } from 'vitest'

/** As the pools and databases of drivers, and requests: an instance, whose fields are no options. */
class Client {
  _events = {}
  ending = false
  options = {}
  name = 'payments.db'
  query(): void {}
}

test.each([
  { of: 'PostgresStore', make: (given: never) => new PostgresStore(given), such: '{ pool: … }' },
  { of: 'MySqlStore', make: (given: never) => new MySqlStore(given), such: '{ pool: … }' },
  { of: 'SqliteStore', make: (given: never) => new SqliteStore(given), such: '{ database: … }' },
  { of: 'idempotency()', make: (given: never) => idempotency(given), such: '{ store: … }' },
])('$of is given a client in place of options: one mistake, and not its fields', ({ of, make, such }) => {
  expect(() => make(new Client() as never)).toThrow(
    `The options of ${of} are invalid:\n  - expected options, such as ${such}; seen: an object (Client)\nSee `,
  )
})

test('an instance with options of the right names is taken for options', () => {
  class Settings {
    sweeps = 'no'
    hostname = '127.0.0.1'
  }
  const make = () => new PostgresStore(new Settings() as never)
  expect(make).toThrow('hostname: there is no such option')
  expect(make).toThrow('sweeps: expected')
})
