import { createRequestEngine, singleTenant } from 'once-per-key/http'
import { expect, test } from 'vitest'
import { failingStore } from '../support/failing-store.js'
import { requestFacts } from '../support/request-facts.js'

type Scope = Parameters<typeof createRequestEngine>[0]['scope']

function decide(scope: Scope) {
  const store = failingStore()
  const engine = createRequestEngine({ store, scope })
  return { store, decided: (async () => engine.decide(requestFacts()))() }
}

const MISUSES: { readonly name: string; readonly scope: () => unknown; readonly seen: string }[] = [
  { name: 'undefined', scope: () => undefined, seen: 'undefined' },
  { name: 'null', scope: () => null, seen: 'null' },
  { name: 'a number', scope: () => 17, seen: 'a number' },
  { name: 'NaN', scope: () => Number.NaN, seen: 'a number' },
  { name: 'a bigint', scope: () => 17n, seen: 'a bigint' },
  { name: 'true', scope: () => true, seen: 'a boolean' },
  { name: 'a symbol', scope: () => Symbol('acme'), seen: 'a symbol' },
  { name: 'a function', scope: () => () => 'acme', seen: 'a function' },
  { name: 'an object', scope: () => ({ id: 'acme' }), seen: 'an object (Object)' },
  { name: 'an object that says a string', scope: () => new String('acme'), seen: 'an object (String)' },
  { name: 'an object without prototype', scope: () => Object.create(null), seen: 'without prototype' },
  { name: 'an object with a constructor of its own', scope: () => ({ constructor: { name: {} } }), seen: '(Object)' },
  { name: 'an array', scope: () => ['acme'], seen: 'an array' },
  { name: 'an empty string', scope: () => '', seen: 'an empty string' },
  { name: '256 characters', scope: () => 'x'.repeat(256), seen: 'more than 255 characters' },
  { name: '256 astral characters', scope: () => '😀'.repeat(256), seen: 'more than 255 characters' },
  { name: 'a high surrogate alone', scope: () => 'acme\ud800', seen: 'surrogate' },
  { name: 'a low surrogate alone', scope: () => '\udc00acme', seen: 'surrogate' },
  ...['undefined', 'null', 'NaN', '[object Object]', '[object Promise]'].map((word) => ({
    name: `the word ${word}`,
    scope: () => word,
    seen: `the word "${word}"`,
  })),
  { name: 'a promise of nothing', scope: async () => undefined, seen: 'undefined' },
  { name: 'a promise of a number', scope: async () => 17, seen: 'a number' },
]

test.each(MISUSES)(
  'a scope that is $name is misuse: nothing is coerced, and nothing is stored',
  async ({ scope, seen }) => {
    const { store, decided } = decide(scope as Scope)
    const error = await decided.catch((reason: unknown) => reason)
    expect(error).toMatchObject({ name: 'IdempotencyError', code: 'scope_invalid' })
    expect((error as Error).message).toContain(seen)
    expect((error as Error).message).toMatch(/mount authentication before.*singleTenant/)
    expect(store.sent).toEqual([])
  },
)

test.each([
  {
    name: 'throws',
    scope: () => {
      throw new Error('no session')
    },
  },
  { name: 'rejects', scope: () => Promise.reject(new Error('no session')) },
])('a scope that $name is misuse, with its cause', async ({ scope }) => {
  const { store, decided } = decide(scope)
  await expect(decided).rejects.toMatchObject({ code: 'scope_invalid', cause: { message: 'no session' } })
  expect(store.sent).toEqual([])
})

test.each([
  { name: 'a string', scope: () => 'acme', is: 'acme' },
  { name: 'a promise of a string', scope: async () => 'acme', is: 'acme' },
  { name: 'singleTenant', scope: singleTenant, is: 'single-tenant' },
  { name: 'one character', scope: () => 'a', is: 'a' },
  { name: '255 characters', scope: () => 'x'.repeat(255), is: 'x'.repeat(255) },
  { name: '255 astral characters', scope: () => '😀'.repeat(255), is: '😀'.repeat(255) },
  { name: 'a word that only looks like an accident', scope: () => 'nullify', is: 'nullify' },
  { name: 'surrounded by space', scope: () => ' acme ', is: ' acme ' },
])('a scope that is $name is taken as it is', async ({ scope, is }) => {
  const decision = await decide(scope).decided
  expect(decision.action === 'execute' && decision.run.context.scope).toBe(is)
})

test('a scope is asked with the request, and only where there is a key', async () => {
  const asked: unknown[] = []
  const scope: Scope = (request) => {
    asked.push(request)
    return 'acme'
  }
  const engine = createRequestEngine({ store: failingStore(), scope })
  await engine.decide(requestFacts({ key: null }))
  await engine.decide(requestFacts({ method: 'GET' }))
  const facts = requestFacts({ target: '/asked' })
  await engine.decide(facts)
  expect(asked).toEqual([facts.request])
})
