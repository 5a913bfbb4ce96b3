// Handlers of Fetch over the packed package, for every runtime.
import { idempotency, singleTenant } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'

let once
const runs = {}

/** As Workers call it; the others give no context. */
export function answer(request, _env, context) {
  // Not before the first request: Workers draw no random numbers until then.
  once ??= idempotency({ store: new MemoryStore(), scope: singleTenant, maxAnswerBytes: 1_024 })
  const { pathname } = new URL(request.url)
  const waitUntil = (pending) => context?.waitUntil?.(pending)
  return once.handle(request, handlers[pathname.slice(1)], { waitUntil })
}

const handlers = {
  async json(request, { attempt }) {
    const run = count('json')
    return Response.json({ run, attempt, body: await request.json() }, { status: 201, headers: { 'X-Receipt': '17' } })
  },

  async bytes(request) {
    return new Response(await request.arrayBuffer(), { headers: { 'Content-Type': 'application/octet-stream' } })
  },

  async fails(_request, { previousOutcome }) {
    if (count('fails') === 1) throw new Error('no money')
    return new Response(previousOutcome)
  },

  stream() {
    let chunks = 0
    const stream = new ReadableStream({
      async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 1))
        controller.enqueue(new Uint8Array(1_024).fill(chunks))
        if (++chunks === 8) controller.close()
      },
    })
    return new Response(stream, { headers: { 'Content-Type': 'application/octet-stream' } })
  },

  async slow() {
    await new Promise((resolve) => setTimeout(resolve, 200))
    return new Response(`run ${count('slow')}`)
  },
}

function count(name) {
  runs[name] = (runs[name] ?? 0) + 1
  return runs[name]
}
