// src/routes/payouts/+server.ts
import { createPayout } from './fetch.js'
import { once } from './once.js'

interface RequestEvent {
  readonly request: Request
  readonly locals: { readonly merchantId: string }
}

export const POST = ({ request, locals }: RequestEvent): Promise<Response> =>
  once.handle(request, createPayout, { scope: locals.merchantId })
