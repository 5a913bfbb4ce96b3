import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { npm, ROOT, run } from '../support/packed-package.js'

// A job that was refused counted as failed where one part of a program had imported the package, and another had required it.

interface Copy {
  readonly classes: Readonly<Record<string, abstract new (...args: never) => Error>>
  readonly errors: Readonly<Record<string, Error>>
}

/** Every class of errors that an entry exports, and an error of each. */
async function loadCopy(): Promise<Copy> {
  vi.resetModules()
  const { CertainFailure, IdempotencyError } = await import('../../src/index.js')
  const { CasStoreError } = await import('../../src/core/index.js')
  const { RefusedError } = await import('../../src/run/index.js')
  const { WebhookEventError } = await import('../../src/webhooks/index.js')
  const { PostgresStoreError } = await import('../../adapters/postgres/index.js')
  const { MySqlStoreError } = await import('../../adapters/mysql/index.js')
  const { SqliteStoreError } = await import('../../adapters/sqlite/index.js')
  const { SealedStoreError } = await import('../../adapters/sealed/index.js')
  const classes = {
    ...{ CertainFailure, IdempotencyError, RefusedError, WebhookEventError },
    ...{ PostgresStoreError, MySqlStoreError, SqliteStoreError, SealedStoreError, CasStoreError },
  }
  const errors = {
    CertainFailure: new CertainFailure('no'),
    IdempotencyError: new IdempotencyError('options_invalid', 'no'),
    RefusedError: new RefusedError('in_flight', 1_000, false),
    WebhookEventError: new WebhookEventError([]),
    PostgresStoreError: new PostgresStoreError('database_failed', 'no'),
    MySqlStoreError: new MySqlStoreError('database_failed', 'no'),
    SqliteStoreError: new SqliteStoreError('database_failed', 'no'),
    SealedStoreError: new SealedStoreError('seal_broken', 'no'),
    CasStoreError: new CasStoreError('contended', 'no'),
  }
  return { classes, errors }
}

const own = await loadCopy()
const other = await loadCopy()

describe.each(Object.entries(own.classes))('%s', (name, Class) => {
  test('recognises its errors in another copy of the package, and no others', () => {
    const another = other.errors[name]
    expect(another?.constructor).not.toBe(Class)
    expect(another).toBeInstanceOf(Class)
    for (const error of [...Object.entries({ ...own.errors, ...other.errors }), ['Error', new Error('no')] as const]) {
      expect([error[0], error[1] instanceof Class]).toEqual([error[0], error[0] === name])
    }
    for (const value of [null, undefined, 'no', {}, { name, code: 'certain_failure' }]) {
      expect(value instanceof (Class as never)).toBe(false)
    }
  })

  test('a class that extends it recognises only its own, and is recognised by both copies', () => {
    class Mine extends (Class as new () => Error) {}
    const mine = Object.create(Mine.prototype)
    expect(mine).toBeInstanceOf(Mine)
    expect(mine).toBeInstanceOf(Class)
    expect(mine).toBeInstanceOf(other.classes[name] as never)
    for (const error of [own.errors[name], other.errors[name]]) expect(error).not.toBeInstanceOf(Mine)
  })
})

test.each(['PostgresStoreError', 'MySqlStoreError', 'SqliteStoreError', 'SealedStoreError', 'CasStoreError'])(
  '%s of another copy is a StoreError, and a misuse is none',
  async (name) => {
    vi.resetModules()
    const { StoreError } = await import('../../src/core/index.js')
    expect(other.errors[name]).toBeInstanceOf(StoreError)
    expect(other.errors.IdempotencyError).not.toBeInstanceOf(StoreError)
  },
)

test('as built, the ES module and the CommonJS copy recognise each other’s errors', { timeout: 300_000 }, async () => {
  if (!existsSync(join(ROOT, 'dist/index.cjs'))) await run(npm, ['run', '--silent', 'build:code'], ROOT)
  const program = `
    import { createRequire } from 'node:module'
    const entries = ['once-per-key', 'once-per-key/run', 'once-per-key/core', 'once-per-key/postgres', 'once-per-key/mysql',
      'once-per-key/sqlite', 'once-per-key/sealed', 'once-per-key/receiver']
    const require = createRequire(import.meta.url)
    const found = []
    for (const entry of entries) {
      const copies = [await import(entry), require(entry)]
      for (const [name, Class] of Object.entries(copies[0])) {
        if (!(Class?.prototype instanceof Error)) continue
        const [one, two] = copies.map((copy) => copy[name])
        const isBoth = Object.create(one.prototype) instanceof two && Object.create(two.prototype) instanceof one
        found.push([name, one !== two && isBoth])
      }
    }
    console.log(JSON.stringify(found))`
  const found = JSON.parse(await run(process.execPath, ['--input-type=module', '--eval', program], ROOT))
  expect(new Set(found.map(([name]: [string]) => name))).toEqual(new Set([...Object.keys(own.classes), 'StoreError']))
  expect(found.filter(([, isBoth]: [string, boolean]) => !isBoth)).toEqual([])
})
