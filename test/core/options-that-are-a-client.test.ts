import { idempotency } from 'once-per-key'
import { idempotency as ofFetch } from 'once-per-key/fetch'
import { idempotency as ofHono } from 'once-per-key/hono'
import { idempotency as ofKoa } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
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

class Pretender {
  header() {}
  render = 1
  status = 2
}

test.each([
  ['a store', new MemoryStore()],
  ['an instance that shares a name by chance', Object.assign(new Pretender(), { header: () => {} })],
  ['nothing', undefined],
  ['a function', () => ({})],
  ['a list', [new MemoryStore()]],
])('%s in place of the options of an `idempotency` is one mistake, in each entry', (_what, given) => {
  for (const make of [idempotency, ofFetch, ofHono, ofKoa] as ((given: unknown) => unknown)[]) {
    expect(() => make(given)).toThrow(
      /^The options of idempotency\(\) are invalid:\n {2}- expected options, such as { store: … }; seen: [^\n]+\nSee /,
    )
  }
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
