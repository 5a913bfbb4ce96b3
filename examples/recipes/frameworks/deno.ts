import { createPayout } from './fetch.js'
import { once } from './once.js'

declare const Deno: { serve(handler: (request: Request) => Promise<Response>): unknown }

Deno.serve(once((request, idempotency) => createPayout(request, idempotency)))
