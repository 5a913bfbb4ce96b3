import express from 'express'
import { Redis } from 'ioredis'
import { bodyField, type IdempotencyOptions, type IdempotencyRequest, idempotency } from 'once-per-key'
import { createRequestEngine } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { RedisStore, type RedisStoreOptions } from 'once-per-key/redis'
import { createClient } from 'redis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listen } from '../support/bindings.js'
import { mistakesOf } from '../support/mistakes-of.js'
import { requestFacts } from '../support/request-facts.js'

// Errors said that something was wrong, not what: "seen: an array" of methods in lower case, forty "unknown options" where a
// client stood in place of `{ client }`, "scope() failed." with the reason in a `cause` that few loggers print. And a password in
// a URL was repeated.

const store = new MemoryStore()
const scope = () => 'acme'

describe('a mistake in the options names the culprit', () => {
  test.each<{ name: string; options: Record<string, unknown>; seen: string }>([
    { name: 'a method in lower case', options: { methods: ['POST', 'post'] }, seen: `"post" (did you mean 'POST'?)` },
    { name: 'a method with space', options: { methods: ['PUT '] }, seen: `"PUT " (did you mean 'PUT'?)` },
    { name: 'no method', options: { methods: ['POST', 1] }, seen: '1' },
    {
      name: 'an object among methods',
      options: { methods: [Object.create(null)] },
      seen: 'an object (without prototype)',
    },
    { name: 'no methods', options: { methods: [] }, seen: 'an empty array' },
    { name: 'a text of methods', options: { methods: 'POST' }, seen: '"POST"' },
    {
      name: 'a code that is near',
      options: { problemStatuses: { in_flight: 409, mismatch: 422 } },
      seen: 'the code mismatch (did you mean mismatched?)',
    },
    { name: 'a code that is not', options: { problemStatuses: { teapot: 418 } }, seen: 'the code teapot' },
    { name: 'a status', options: { problemStatuses: { mismatched: 200 } }, seen: 'mismatched: 200' },
    { name: 'a status in quotes', options: { problemStatuses: { mismatched: '422' } }, seen: 'mismatched: "422"' },
    {
      name: 'a misspelt option of bodyField',
      options: { legacyKey: bodyField('key', { deprecatedSince: new Date(), whenBth: 'field' } as never) },
      seen: 'the option whenBth (did you mean whenBoth?)',
    },
  ])('$name', ({ options, seen }) => {
    const [mistake, ...others] = mistakesOf(() =>
      idempotency({ store, scope, ...options } as IdempotencyOptions<never>),
    )
    expect(mistake?.split('; seen: ')[1]).toBe(seen)
    expect(others).toEqual([])
  })
})

describe('a client, or its URL, in place of RedisStore’s options is told to be written as { client }', () => {
  const secret = 'hunter2'
  const url = `redis://:${secret}@127.0.0.1:6379`
  test.each<{ name: string; given: () => unknown; seen: string }>([
    { name: 'ioredis', given: () => new Redis(url, { lazyConnect: true }), seen: 'a client' },
    { name: 'node-redis', given: () => createClient({ url }), seen: 'a client' },
    { name: 'a promise of one', given: () => Promise.resolve(), seen: 'an object (Promise)' },
    { name: 'a class', given: () => Redis, seen: 'a function' },
    { name: 'a URL', given: () => url, seen: 'a URL' },
    { name: 'a URL that was parsed', given: () => new URL(url), seen: 'a URL' },
  ])('$name', ({ given, seen }) => {
    const [mistake, ...others] = mistakesOf(() => new RedisStore(given() as RedisStoreOptions))
    expect(mistake).toContain(`expected options; seen: ${seen}`)
    expect(mistake).toContain('Write `{ client }`')
    expect(mistake).not.toContain(secret)
    expect(others).toEqual([])
  })

  test('a URL as the client is not repeated either', () => {
    const [mistake] = mistakesOf(() => new RedisStore({ client: url } as never))
    expect(mistake).toMatch(/^client: expected a client.*; seen: a string$/)
  })
})

describe('a function of the options that fails is told with its reason', () => {
  const long = 'x'.repeat(1_000)
  const REASONS: readonly { readonly thrown: unknown; readonly told: string }[] = [
    {
      thrown: new TypeError("Cannot read properties of undefined (reading 'id')"),
      told: ": Cannot read properties of undefined (reading 'id'). ",
    },
    { thrown: new Error('No session.\n  Log in first.'), told: ': No session. Log in first. ' },
    { thrown: { message: 'an error of another realm' }, told: ': an error of another realm. ' },
    { thrown: new Error(long), told: `: ${'x'.repeat(300)}…. ` },
    { thrown: new Error(), told: '. ' },
    { thrown: 'hunter2', told: ' with a string. ' },
    { thrown: undefined, told: ' with undefined. ' },
    {
      thrown: new Proxy(
        {},
        {
          get: () => {
            throw new Error('no')
          },
        },
      ),
      told: '. ',
    },
  ]

  test.each(REASONS)('$told', async ({ thrown, told }) => {
    const fail = () => {
      throw thrown
    }
    for (const option of ['scope', 'skip', 'fingerprint']) {
      const engine = createRequestEngine({ store, scope, [option]: fail })
      const error = (await asked(() => engine.decide(requestFacts()))) as Error
      expect(error.message).toContain(`${option}() failed${told}`)
      expect(error.cause).toBe(thrown)
    }
  })
})

/** What was thrown at once, or later. */
async function asked(ask: () => unknown): Promise<unknown> {
  try {
    return await ask()
  } catch (error) {
    return error
  }
}

test('an option may ask for req.path, as the docs write it', async () => {
  const app = express()
  const once = idempotency<IdempotencyRequest>({ store, scope, skip: (req) => req.path === '/health' })
  app.use(express.json(), once, (_req, res) => void res.json({}))
  const { port, close } = await listen(app)
  onTestFinished(close)
  const headers = { 'Idempotency-Key': 'order-1' }
  const replayed = async (path: string) => {
    await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers })
    const { headers: told } = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers })
    return told.get('Idempotent-Replayed')
  }
  expect([await replayed('/health'), await replayed('/payouts')]).toEqual([null, 'true'])
})
