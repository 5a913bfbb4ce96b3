import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { engineOnTrial, runOf } from '../support/engine-on-trial.js'
import { answer } from '../support/request-facts.js'

interface Golden {
  readonly method: string
  readonly target: string
  readonly json: string
  readonly keys: readonly {
    readonly scope: string
    readonly key: string
    readonly label: string
    readonly uuid: string
  }[]
}

const GOLDEN: Golden = JSON.parse(readFileSync(new URL('./golden/derived-keys-v1.json', import.meta.url), 'utf8'))

test.each(GOLDEN.keys)('the derived key of $scope, $key and $label is frozen', async ({ scope, key, label, uuid }) => {
  const { run } = engineOnTrial()
  const { method, target, json } = GOLDEN
  const wireKey = Buffer.from(key).toString('latin1')
  const execution = await run({ scope, key: wireKey, method, target, body: JSON.parse(json) })
  expect(execution.context.deriveKey(label)).toBe(uuid)
})

test('a derived key is a UUID of version 8 and RFC 9562’s variant, whatever the label', async () => {
  const { run } = engineOnTrial()
  const { deriveKey } = (await run()).context
  const keys = Array.from({ length: 500 }, (_, i) => deriveKey(`label ${i}`))
  for (const key of keys) expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(new Set(keys).size).toBe(keys.length)
  expect(new Set(keys.map((key) => key[19])).size).toBe(4)
})

test('a derived key is the same for every attempt, and in every process', async () => {
  const trial = engineOnTrial()
  const first = await trial.run()
  const key = first.context.deriveKey('bank transfer')
  await first.settle(answer(422))
  const second = await trial.run()
  expect(second.context.attempt).toBe(2)
  expect(second.context.deriveKey('bank transfer')).toBe(key)
  expect((await engineOnTrial().run()).context.deriveKey('bank transfer')).toBe(key)
})

test('a derived key differs by label, scope, key and fingerprint', async () => {
  const { run } = engineOnTrial()
  const runs = [
    await run(),
    await run({ scope: 'globex' }),
    await run({ key: 'order-2' }),
    await run({ key: 'order-3', body: { amount: 1 } }),
    await run({ key: 'order-4', body: { amount: 2 } }),
  ]
  const keys = runs.flatMap(({ context: { deriveKey } }) => [deriveKey('a'), deriveKey('b')])
  expect(new Set(keys).size).toBe(keys.length)

  const one = engineOnTrial()
  const failed = await one.run({ body: { amount: 1 } })
  await failed.settle(answer(422))
  const corrected = await one.run({ body: { amount: 2 } })
  expect(corrected.context.deriveKey('a')).not.toBe(failed.context.deriveKey('a'))
})

test('a derived key differs by namespace: what is no request never gets the key of a request', async () => {
  const trial = engineOnTrial()
  const identity = { scope: 'acme', key: 'order-1', fingerprint: 'f'.repeat(64) }
  const claimed = { request: {}, isAbandoned: () => false }
  const ofRequest = runOf(await trial.engine.claim(identity, claimed))
  const ofEvent = runOf(await trial.engine.claim({ namespace: 'webhook', ...identity }, claimed))
  expect(ofEvent.context.deriveKey('a')).not.toBe(ofRequest.context.deriveKey('a'))
})

test('the parts of a derived key cannot be shifted into each other', async () => {
  const { run } = engineOnTrial()
  const a = await run({ scope: 'a","b', key: 'c' })
  const b = await run({ scope: 'a', key: 'b","c' })
  expect(a.context.deriveKey('x')).not.toBe(b.context.deriveKey('x'))
})

test.each([
  { label: '', seen: 'an empty string' },
  { label: undefined, seen: 'undefined' },
  { label: 17, seen: 'a number' },
  { label: {}, seen: 'an object (Object)' },
])('a label that is $seen is misuse', async ({ label, seen }) => {
  const { deriveKey } = (await engineOnTrial().run()).context
  expect(() => deriveKey(label as string)).toThrow(
    expect.objectContaining({ code: 'label_invalid', message: expect.stringContaining(seen) }),
  )
})
