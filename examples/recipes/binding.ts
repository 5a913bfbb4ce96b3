import type { Answer, IdempotencyContext } from 'once-per-key/core'
import {
  createRequestEngine,
  type HeaderPairs,
  type IdempotencyOptions,
  parseComparableBody,
  type RequestEnd,
} from 'once-per-key/http'

type Handler = (request: Request, idempotency?: IdempotencyContext) => Response | Promise<Response>

/** A binding for handlers that take a Fetch `Request` and return a `Response`, whose body is read whole. */
export function bound(handler: Handler, options: IdempotencyOptions<Request>) {
  const engine = createRequestEngine(options)

  async function handle(request: Request): Promise<Response> {
    const rawHeaders = [...request.headers].flat()
    const decision = await engine.decide({
      request,
      method: request.method,
      target: request.url.slice(new URL(request.url).origin.length),
      rawHeaders,
      ...parseComparableBody(new Uint8Array(await request.clone().arrayBuffer()), rawHeaders),
      isAbandoned: () => request.signal.aborted,
    })
    if (decision.action === 'bypass') return handler(request)
    if (decision.action !== 'execute') return instead(decision, decision.extraHeaders)

    const { run, extraHeaders } = decision
    try {
      const answer = await answerOf(await handler(request, run.context))
      const isKept = run.keepsBody(answer.body.byteLength, new Headers(answer.headers).get('Content-Type'))
      const settled = await run.settle(isKept ? answer : { ...answer, body: null })
      return settled.action === 'send' ? responseOf(answer, extraHeaders) : instead(settled, extraHeaders)
    } catch (error) {
      run.reportError(error)
      await run.fail()
      throw error
    }

    function instead(other: Exclude<RequestEnd, { action: 'send' }>, extra?: HeaderPairs): Response {
      return responseOf(engine.answerFor(other, request), extra)
    }
  }
  return Object.assign(handle, { idle: () => engine.idle() })
}

async function answerOf(
  response: Response,
): Promise<Answer & { headers: [string, string][]; body: Buffer<ArrayBuffer> }> {
  const { status, statusText: statusMessage, headers } = response
  return { status, statusMessage, headers: [...headers], body: Buffer.from(await response.arrayBuffer()) }
}

function responseOf({ status, statusMessage, headers, body }: Answer, extraHeaders: HeaderPairs = []): Response {
  const pairs = [...headers, ...extraHeaders].map(([name, value]): [string, string] => [name, value])
  const bytes = body === null || body.byteLength === 0 ? null : Buffer.from(body)
  return new Response(bytes, { status, statusText: statusMessage, headers: pairs })
}
