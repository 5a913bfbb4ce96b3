import { inspect } from 'node:util'
import { PostgresStore } from 'once-per-key/postgres'
import { describe, expect, test } from 'vitest'
import {
  findSqlState,
  isSerializationFailure,
  isStatementRefusal,
  storeError,
} from '../../../adapters/postgres/errors.js'

/** An error in the form of each client, with an SQLSTATE. */
const SHAPES: Readonly<Record<string, (sqlState: string) => unknown>> = {
  'pg, postgres.js': (code) => errorWith({ code, severity: 'ERROR' }),
  Drizzle: (code) => errorWith({ cause: errorWith({ code }) }),
  'Prisma, by an adapter': (code) =>
    errorWith({
      code: 'P2010',
      meta: { driverAdapterError: errorWith({ cause: { originalCode: code, kind: 'postgres' } }) },
    }),
  'Prisma, by its engine': (code) => errorWith({ code: 'P2010', meta: { code, message: 'refused' } }),
  Sequelize: (code) => errorWith({ parent: errorWith({ code }), original: errorWith({ code }) }),
  TypeORM: (code) => errorWith({ driverError: errorWith({ code }), code }),
  MikroORM: (code) => errorWith({ code, cause: errorWith({ code }) }),
}

describe.each(Object.entries(SHAPES))('an error of %s', (_name, shaped) => {
  test.each(['40001', '40P01', '3F000', '42704'])('shows its SQLSTATE: %s', (sqlState) => {
    expect(findSqlState(shaped(sqlState))).toBe(sqlState)
    expect(isSerializationFailure(shaped(sqlState))).toBe(sqlState.startsWith('40'))
  })

  test('is told by its meaning, and kept as the cause', () => {
    const error = shaped('3F000')
    expect(storeError(error, 'payouts')).toMatchObject({ code: 'schema_missing', cause: error })
  })
})

test.each([
  ['record_ended', 'unrecognized configuration parameter "once_per_key.record_ended.failed"'],
  ['read_only', 'unbekannter Konfigurationsparameter »once_per_key.read_only«'],
  [
    'record_taken',
    'SELECT \'once_per_key.nothing_written\' - unrecognized configuration parameter "once_per_key.record_taken"',
  ],
  ['database_failed', 'unrecognized configuration parameter "once_per_key.tomorrow"'],
  ['database_failed', 'type "money2" does not exist'],
])('a reason that a statement raised is read from the name of a setting: %s', (code, message) => {
  for (const cause of [
    errorWith({ code: '42704' }, message),
    errorWith({ cause: errorWith({ code: '42704' }, message) }),
  ])
    expect(storeError(cause, 's')).toMatchObject({ code })
})

test.each([
  ['Node’s codes', { code: 'EPIPE' }],
  ['Prisma’s own', { code: 'P1001' }],
  ['numbers', { code: 40001 }],
  ['nothing', null],
  ['a text', '40001'],
  ['a round', round()],
])('%s are no SQLSTATE', (_name, error) => {
  expect(findSqlState(error)).toBeNull()
})

test.each([
  [errorWith({ code: 'ECONNREFUSED' }), 'connection_lost'],
  [errorWith({ code: 'ECONNRESET' }), 'connection_lost'],
  [errorWith({ code: 'CONNECTION_CLOSED' }), 'connection_lost'],
  [new AggregateError([errorWith({ code: 'ECONNREFUSED' })], ''), 'connection_lost'],
  [new Error('Connection terminated unexpectedly'), 'connection_lost'],
  [errorWith({ code: '57P01', severity: 'FATAL' }), 'connection_lost'],
  [errorWith({ code: '08006' }), 'connection_lost'],
  [new Error('timeout exceeded when trying to connect'), 'connections_exhausted'],
  [errorWith({ code: '53300' }), 'connections_exhausted'],
  [errorWith({ code: '53100' }), 'database_full'],
  [errorWith({ code: '53200' }), 'database_full'],
  [errorWith({ code: '55P03' }), 'record_locked'],
  [errorWith({ code: '26000' }), 'statement_unprepared'],
  [errorWith({ code: '42P05' }), 'statement_unprepared'],
  [errorWith({ code: '57014' }), 'timed_out'],
  [errorWith({ code: '25006' }), 'read_only'],
  [errorWith({ code: '42501' }), 'permission_denied'],
  [errorWith({ code: '22P02' }), 'database_failed'],
  [new TypeError('not a function'), 'database_failed'],
  ['a text', 'database_failed'],
])('%o means %s', (error, code) => {
  expect(storeError(error, 's').code).toBe(code)
})

test('of errors around it, whose words hold the values of the statement, none is told', () => {
  const outer = errorWith(
    { cause: errorWith({ code: '40001' }, 'could not serialize access') },
    'Failed query: … params: secret',
  )
  const { message } = storeError(outer, 's')
  expect(message).toContain('could not serialize access')
  expect(message).not.toContain('secret')
})

test('a connection is good after a statement that was refused, and no other error', () => {
  expect(isStatementRefusal(errorWith({ code: '55P03', severity: 'ERROR' }))).toBe(true)
  expect(isStatementRefusal(errorWith({ code: '57P01', severity: 'FATAL' }))).toBe(false)
  expect(isStatementRefusal(errorWith({ code: '53300', severity: 'FATAL' }))).toBe(false)
  expect(isStatementRefusal(errorWith({ code: 'XX000', severity: 'PANIC' }))).toBe(false)
  expect(isStatementRefusal(errorWith({ code: 'ECONNRESET' }))).toBe(false)
  expect(isStatementRefusal(new Error('unknown'))).toBe(false)
})

function errorWith(fields: Readonly<Record<string, unknown>>, message = 'refused'): Error {
  return Object.assign(new Error(message), fields)
}

function round(): unknown {
  const one: Record<string, unknown> = {}
  one.cause = one
  return one
}

test('an error names neither key nor answer, whatever a client puts into its own', async () => {
  const store = new PostgresStore({
    sweeps: false,
    async query(text, values) {
      const cause = Object.assign(new Error('no space left'), { code: '53100' })
      throw Object.assign(new Error(`Failed query: ${text}\nparams: ${values}`, { cause }), {
        query: text,
        params: values,
      })
    },
  })
  const own = { token: 't', scope: 's', fingerprint: 'f', attempt: 1, uncertain: false, retentionMs: 1_000 }
  const answer = { status: 201, statusMessage: '', headers: [], body: Buffer.from('do not tell') }
  const error = await store.complete('acme:secret', { ...own, answer }).catch((error: unknown) => error)
  expect(error).toMatchObject({ code: 'database_full', cause: { cause: { code: '53100' } } })
  expect((error as Error).message).toMatch(/The client said: no space left$/)
  expect(inspect(error, { depth: 10 })).not.toMatch(/acme:secret|do not tell|64 6f 20 6e 6f 74/)
})
