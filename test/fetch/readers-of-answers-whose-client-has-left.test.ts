import { idempotency } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { gate } from '../support/gate.js'

// Code around a handler that reads its response, such as a compression or a log, waited for ever where the request's signal aborted: it got
// no further byte, and no end.

test.each(['before it reads', 'while it reads'])('a reader is told that the client has left %s', async (when) => {
  const written = gate()
  let chunks = 0
  const source = () =>
    new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (++chunks > 3) return controller.close()
        if (chunks > 2) await written.opened
        controller.enqueue(new Uint8Array(10))
      },
    })
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', maxAnswerBytes: 1 })
  const leaving = new AbortController()
  const request = { method: 'POST', headers: { 'Idempotency-Key': 'k' } }
  const response = await once(() => new Response(source()))(
    new Request('http://test/', { ...request, signal: leaving.signal }),
  )
  const left = new Error('The client has left')
  if (when === 'before it reads') leaving.abort(left)
  const read = expect(response.text()).rejects.toBe(left)
  if (when === 'while it reads') leaving.abort(left)
  written.open()
  await read
  await once.idle()
  expect(chunks).toBe(4) // To its end, which counts.
  const retried = await once(() => new Response('never'))(new Request('http://test/', request))
  expect(await retried.json()).toMatchObject({ code: 'answer_not_kept' })
})
