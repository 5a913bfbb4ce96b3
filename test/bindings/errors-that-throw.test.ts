import { MemoryStore } from 'once-per-key/memory'
import type { PostgresStore } from 'once-per-key/postgres'
import { expect, test } from 'vitest'
import { BINDINGS } from '../adapters/postgres/on-bindings.js'
import { inTime } from '../support/in-time.js'

class Unreadable extends Error {
  override get name(): string {
    throw new Error('Set later, or never.')
  }
}

const thrown = [
  ['an error whose name throws', () => new Unreadable()],
  [
    'a proxy that throws',
    () =>
      new Proxy(new Error(), {
        getPrototypeOf() {
          throw new Error('No.')
        },
      }),
  ],
] as const

const CASES = BINDINGS.flatMap(([name, serve]) => thrown.map(([what, make]) => ({ name, what, serve, make })))

// Koa cannot answer a proxy that throws, with or without a key.
test.each(CASES.filter(({ name, what }) => name !== 'Koa' || what !== 'a proxy that throws'))(
  '$name: a handler that throws $what has failed, and nothing waits',
  async ({ serve, make }) => {
    const store = new MemoryStore() as unknown as PostgresStore
    const settings = { leaseMs: 4_000, maxRunMs: 60_000, storeTimeoutMs: 1_000 }
    const { send, idle } = await serve(store, settings, async () => Promise.reject(make()))
    const { status } = await inTime(send(), 5_000)
    expect(status).toBeGreaterThanOrEqual(500)
    await inTime(idle(), 5_000)
  },
)
