import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { redactErrorValues } from '../../adapters/sql/errors.js'
import { expectNothingOf, secretOf } from '../support/secrets.js'

const SECRET = secretOf('pay bob 900 (zebra)')
const HEX = Buffer.from(SECRET.words).toString('hex')

/** What servers say, in several languages. `?` is what they quote. */
const WORDS = [
  "You have an error in your SQL syntax; check the manual for the right syntax to use near '?' at line 3",
  "Duplicate entry '?' for key 'PRIMARY'",
  "Incorrect string value: '?' for column `db`.`records`.`head` at row 1",
  'invalid input syntax for type bigint: "?"',
  'ungültige Eingabesyntax für Typ bigint: »?«',
  'syntaxe en entrée invalide pour le type bigint : « ? »',
  'invalid input syntax for type bigint: “?”',
  'bigint型の入力構文が不正です: 「?」',
  'syntax error at or near \n?',
  "INSERT INTO `records` VALUES (X'?') - Deadlock found when trying to get lock",
  "Can't write '?'",
]

/** How clients hand on what the server said. */
const SHAPES: readonly ((inner: Error, values: readonly unknown[], sql: string) => unknown)[] = [
  (inner) => inner,
  (inner, params, sql) =>
    Object.assign(new Error(`Failed query: ${sql}\nparams: ${params}`, { cause: inner }), { query: sql, params }),
  (inner, parameters, sql) => Object.assign(inner, { sql, parameters, bindings: parameters, values: parameters }),
  (inner, values, sql) =>
    Object.assign(new Error(inner.message), {
      parent: inner,
      original: inner,
      sql,
      errors: [{ value: values[0], instance: { values } }],
    }),
  (inner, values) =>
    Object.assign(new Error('Raw query failed.'), {
      code: 'P2010',
      meta: { message: inner.message, driverAdapterError: Object.assign(inner, { values }) },
    }),
  (inner, values) =>
    new AggregateError([new Error('no address'), Object.assign(inner, { args: values })], `all failed: "${values[0]}"`),
  (inner) => [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].reduce((cause: Error) => new Error('around', { cause }), inner),
  (inner, values) => Object.freeze(Object.assign(inner, { values })),
  (inner, values) => Object.defineProperty(inner, 'query', { get: () => values, enumerable: true }),
  (inner, values) => Object.assign(inner, { [Symbol('client')]: { values }, client: { config: { values } } }),
  (inner) => inner.message,
  (inner, values) => ({ message: inner.message, values }),
]

const value = fc.constantFrom(
  SECRET.words,
  Buffer.from(SECRET.words),
  HEX,
  `x'${HEX}'`,
  Buffer.from(SECRET.words).toString('base64'),
)

test('nothing of a statement is left in an error, wherever the server begins to quote and whatever the client adds', () => {
  const quoting = fc.record({ words: fc.constantFrom(...WORDS), value, shape: fc.constantFrom(...SHAPES) })
  fc.assert(
    fc.property(quoting, ({ words, value, shape }) => {
      const text = Buffer.isBuffer(value) ? value.toString('hex') : value
      const said = words.replace('?', text)
      const inner = Object.assign(new Error(said), {
        sqlMessage: said,
        detail: `Key (id)=(${text})`,
        where: `unnamed portal $1 = '${text}'`,
      })
      expectNothingOf(redactErrorValues(shape(inner, [value, 7], `INSERT INTO records VALUES ('${text}')`)), [SECRET])
    }),
    { numRuns: 2_000 },
  )
})

describe('what code decides by stays:', () => {
  test('classes, codes, the database’s own names, causes, and where it happened', () => {
    class DatabaseError extends Error {}
    const fields = {
      code: '23505',
      severity: 'ERROR',
      schema: 'once_per_key',
      table: 'records',
      constraint: 'records_pkey',
      routine: '_bt_check_unique',
      errno: 1213,
      fatal: false,
    }
    const inner = Object.assign(
      new DatabaseError('duplicate key value violates unique constraint "records_pkey"'),
      fields,
    )
    const outer = new Error('around', { cause: inner })
    expect(redactErrorValues(outer)).toBe(outer)
    expect(outer.cause).toBe(inner)
    expect(inner).toBeInstanceOf(DatabaseError)
    expect(inner).toMatchObject({ ...fields, message: 'duplicate key value violates unique constraint …' })
    expect(inner.stack).toMatch(
      /^Error: duplicate key value violates unique constraint …\n {4}at .*values-in-errors\.test/,
    )
  })

  test.each([
    'connect ECONNREFUSED 127.0.0.1:5432',
    'Connection terminated unexpectedly',
    'Lock wait timeout exceeded; try restarting transaction',
    "Can't add new command when connection is in closed state",
    'could not read block 12 in file base/5/16384: Input/output error',
    'no such table: main.once_per_key_records',
  ])('words that quote nothing: %s', (words) => {
    expect((redactErrorValues(new Error(words)) as Error).message).toBe(words)
  })

  test('an error of which nothing can be changed is replaced by one with its codes', () => {
    const error = redactErrorValues(Object.freeze(Object.assign(new Error('frozen'), { code: '40001', errno: 1213 })))
    expect(error).toMatchObject({ message: 'frozen', code: '40001', errno: 1213 })
  })

  test('what is not an error and hangs on one, as a client does, is let go unchanged', () => {
    class Client {
      readonly password = 'kept by the client'
    }
    const client = new Client()
    const error = Object.assign(new Error('lost'), { client, parent: client })
    redactErrorValues(error)
    expect(error).toMatchObject({ client: undefined, parent: undefined })
    expect(client.password).toBe('kept by the client')
  })
})
