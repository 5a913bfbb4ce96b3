import { bodyField, singleTenant } from 'once-per-key'
import { createRequestEngine } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { payouts, VERSIONS } from '../support/payouts.js'
import { answer } from '../support/request-facts.js'

// A client whose variable was empty sent the key `undefined`, with every operation: the second one got the first one's answer,
// or a conflict. The words were refused as scopes, but not as keys.

const WORDS = ['undefined', 'null', 'NaN', '[object Object]', '[object Promise]']

describe.each(VERSIONS)('on $version', ({ make }) => {
  test.each(WORDS)('the key %s is refused in the header, quoted or not, and the handler does not run', async (word) => {
    const { post, runs } = await payouts(make)
    for (const key of [word, `"${word}"`]) {
      const reply = await post({ keys: [key] })
      expect(reply).toMatchObject({ status: 400, code: 'key_invalid' })
      expect(reply.json?.detail).toContain(`the word "${word}", which usually means a missing value`)
    }
    expect(runs()).toBe(0)
  })

  test.each(WORDS)('the key %s is refused in the body', async (word) => {
    const legacyKey = bodyField('idempotencyKey', { deprecatedSince: new Date(0) })
    const { post, runs } = await payouts(make, { options: { legacyKey } })
    expect(await post({ keys: [], body: JSON.stringify({ idempotencyKey: word }) })).toMatchObject({
      status: 400,
      code: 'key_invalid',
    })
    expect(runs()).toBe(0)
  })
})

test.each(WORDS)('%s may be the id of an event, and an operator may look for it', async (key) => {
  const engine = createRequestEngine({ store: new MemoryStore(), scope: singleTenant })
  const identity = { namespace: 'webhook', scope: 'sender', key, fingerprint: 'f' } as const
  const decision = await engine.claim(identity, { request: {}, isAbandoned: () => false })
  if (decision.action === 'execute') await decision.run.settle(answer(200))
  expect(await engine.inspect({ namespace: 'webhook', scope: 'sender', key })).toMatchObject({ state: 'completed' })
  expect(await engine.inspect({ scope: 'sender', key })).toBeNull()
})
