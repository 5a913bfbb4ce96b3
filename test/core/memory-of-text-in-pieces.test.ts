import { createRequestEngine, singleTenant } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { footprint } from '../../verification/proof/soak/footprint.js'
import { runOf } from '../support/engine-on-trial.js'
import { requestFacts } from '../support/request-facts.js'

const MAX_BYTES = 4 * 2 ** 20

// V8 keeps text that was put together as the pieces that it was made of: a token of `randomUUID` as twenty of them, a header
// such as `W/"${hash}"` as three. They took half as much again as the store counted, so a bound of 128 MiB held 190.
test('a full store takes what it says, although tokens and headers were put together', {
  timeout: 30_000,
}, async () => {
  const store = new MemoryStore({ maxBytes: MAX_BYTES })
  const engine = createRequestEngine({ store, scope: singleTenant })
  await answered(engine, -1) // What is compiled and set up once is in place when measuring begins.
  const before = await footprint()
  for (let i = 0; await answered(engine, i); i++);
  const held = (await footprint()) - before
  expect(held).toBeLessThan(1.1 * MAX_BYTES)
  expect(await answered(engine, Number.MAX_SAFE_INTEGER), 'the store is still there').toBe(false)
  expect(held).toBeGreaterThan(0.8 * MAX_BYTES)
})

/** Whether there was room. */
async function answered(engine: ReturnType<typeof createRequestEngine>, i: number): Promise<boolean> {
  const decision = await engine.decide(requestFacts({ key: `key-${i}` }))
  if (decision.action === 'reject') return false
  const headers = [0, 1, 2].map((n) => [`x-header-${n}`, `W/"${i}-${n}-${'made of pieces'.slice(n)}"`] as const)
  await runOf(decision).settle({ status: 201, statusMessage: '', headers, body: Buffer.from(`{"id":${i}}`) })
  return true
}
