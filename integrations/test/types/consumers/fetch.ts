// The binding for Fetch, and `sealed`: their types, and the context that a handler receives.
import type { IdempotencyContext, Store } from 'once-per-key/core'
import {
  type FetchHandler,
  type FetchIdempotencyOptions,
  type HandlerWrapper,
  idempotency,
  singleTenant,
} from 'once-per-key/fetch'
import { newSealingKey, type SealedOptions, sealed } from 'once-per-key/sealed'

declare const inner: Store

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const isTrue = <_ extends true>() => {}

const sealing: SealedOptions = { keys: [newSealingKey()] }
const store: Store = sealed(inner, sealing)
// @ts-expect-error: there is no key
sealed(inner, {})

const options: FetchIdempotencyOptions = { store, scope: (request) => request.headers.get('x-merchant') }
const once: HandlerWrapper = idempotency(options)
idempotency({ store, scope: singleTenant, required: true })

export const handler = once(async (_request, context) => {
  isTrue<Equal<typeof context, IdempotencyContext | undefined>>()
  // @ts-expect-error: a request without a key has none
  context.attempt.toFixed()
  return Response.json({ attempt: context?.attempt })
})
export const plain: FetchHandler = async () => new Response(null)

/** A platform's own request, such as Next.js's. */
declare class PlatformRequest extends Request {
  readonly cookies: ReadonlyMap<string, string>
}
type Params = { readonly params: Promise<{ readonly id: string }> }
export const ofPlatform = once(async (request: PlatformRequest, _context, { params }: Params) => {
  isTrue<Equal<typeof request, PlatformRequest>>()
  return Response.json({ id: (await params).id, session: request.cookies.get('session') })
})
isTrue<Equal<Parameters<typeof ofPlatform>, [request: PlatformRequest, Params]>>()
isTrue<Equal<Parameters<typeof handler>[0], Request>>()
export const handlePlatform = (request: PlatformRequest) =>
  once.handle(request, (same) => new Response(same.cookies.get('session')))
export const ofItsOptions: FetchIdempotencyOptions = {
  store,
  scope: (request: PlatformRequest, _params: Params) => request.cookies.get('merchant'),
  fingerprint: (request: PlatformRequest) => [request.cookies.get('cart') ?? null],
  // @ts-expect-error: no request is a number
  skip: (request: number) => request > 0,
}
// @ts-expect-error: the handler needs more than a Request
void once.handle(new Request('http://localhost'), (same: PlatformRequest) => new Response(same.cookies.get('session')))

export async function handle(request: Request): Promise<Response> {
  const reply = await once.handle(request, async (same, context) => {
    isTrue<Equal<typeof context, IdempotencyContext | undefined>>()
    return new Response(same.url)
  })
  await once.idle()
  return reply
}
