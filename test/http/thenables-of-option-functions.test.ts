import { createRequestEngine } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { answer, requestFacts } from '../support/request-facts.js'

// What scope() and fingerprint() answered was chained by its own `then`. One that returns nothing put all merchants into one
// scope, `undefined`, and made all bodies alike.

type Then = (fulfil: (value: unknown) => void, reject: (error: unknown) => void) => unknown

const thenable = (then: Then) => ({ then })
const FULFILLED: Readonly<Record<string, (value: unknown) => unknown>> = {
  'fulfils at once': (value) => thenable((fulfil) => fulfil(value)),
  'fulfils later': (value) => thenable((fulfil) => void setImmediate(fulfil, value)),
  'answers with something else': (value) =>
    thenable((fulfil) => {
      fulfil(value)
      return Promise.resolve('another')
    }),
  'fulfils with a promise': (value) => thenable((fulfil) => fulfil(Promise.resolve(value))),
  'is a function': (value) =>
    Object.assign(
      () => {},
      thenable((fulfil) => fulfil(value)),
    ),
}
const FAILED: Readonly<Record<string, () => unknown>> = {
  'rejects at once': () => thenable((_fulfil, reject) => reject(new Error('no'))),
  'throws when it is called': () =>
    thenable(() => {
      throw new Error('no')
    }),
  'throws when it is looked at': () => Object.defineProperty({}, 'then', { get: fault }),
  'throws when it is looked for': () => new Proxy({}, { has: fault }),
}

function fault(): never {
  throw new Error('no')
}

describe.each(Object.entries(FULFILLED))('an answer whose then %s', (_name, answerOf) => {
  test('is awaited as a scope', async () => {
    const engine = createRequestEngine({ store: new MemoryStore(), scope: () => answerOf('acme') as Promise<string> })
    expect(await engine.decide(requestFacts())).toMatchObject({
      action: 'execute',
      run: { context: { scope: 'acme' } },
    })
  })

  test('is awaited as what makes requests the same', async () => {
    const contents = ['one', 'other']
    const fingerprint = () => answerOf(contents.shift())
    const engine = createRequestEngine({ store: new MemoryStore(), scope: () => 'acme', fingerprint })
    const first = await engine.decide(requestFacts())
    if (first.action === 'execute') await first.run.settle(answer())
    expect(await engine.decide(requestFacts())).toMatchObject({ action: 'reject', problem: { code: 'mismatched' } })
  })
})

test.each(Object.entries(FAILED))('an answer whose then %s is misuse', async (_name, answerOf) => {
  const store = new MemoryStore()
  const scoped = createRequestEngine({ store, scope: () => answerOf() as Promise<string> })
  await expect(async () => scoped.decide(requestFacts())).rejects.toMatchObject({ code: 'scope_invalid' })
  const printed = createRequestEngine({ store, scope: () => 'acme', fingerprint: answerOf })
  await expect(async () => printed.decide(requestFacts())).rejects.toMatchObject({ code: 'fingerprint_invalid' })
})
