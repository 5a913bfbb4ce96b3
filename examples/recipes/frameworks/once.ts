import { idempotency } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'

/** One for the whole application; where several processes serve it, over a store that they share. */
export const once = idempotency({
  store: new MemoryStore(),
  scope: (request: Request) => request.headers.get('X-Merchant'), // as authentication found it
})
