import { idempotency } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

// The rest of an answer whose client has left was read in one turn: a source that never waits, such as a generator of rows, blocked
// the process until its end.

test('a source that never waits does not block the process after its client has left', async () => {
  let chunks = 0
  let chunksAtTimer: number | undefined
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', maxAnswerBytes: 1 })
  const handler = once(
    () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            if (++chunks > 10_000) controller.close()
            else controller.enqueue(new Uint8Array(1))
          },
        }),
      ),
  )
  const { body } = await handler(new Request('http://test/', { method: 'POST', headers: { 'Idempotency-Key': 'k' } }))
  setTimeout(() => {
    chunksAtTimer = chunks
  }, 1)
  await body?.cancel()
  await once.idle()
  expect(chunks).toBe(10_001)
  expect(chunksAtTimer).toBeLessThan(10_000)
  const retried = await handler(new Request('http://test/', { method: 'POST', headers: { 'Idempotency-Key': 'k' } }))
  expect(await retried.json()).toMatchObject({ code: 'answer_not_kept' })
})
