import { createPayout } from './fetch.js'
import { once } from './once.js'

interface ExecutionContext {
  waitUntil(pending: Promise<unknown>): void
}

export default {
  fetch(request: Request, _env: unknown, context: ExecutionContext): Promise<Response> {
    return once.handle(request, createPayout, { waitUntil: (pending) => context.waitUntil(pending) })
  },
}
