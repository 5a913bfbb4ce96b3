import type { IncomingMessage } from 'node:http'
import type { RequestFacts } from '../http/index.js'

/** What a binding tells of a request of Node's. `request` is what option functions are given, `body` what a parser has made. */
export function factsOf<Req>(req: IncomingMessage, request: Req, target: string, body: unknown): RequestFacts<Req> {
  return {
    request,
    method: req.method ?? '',
    target,
    rawHeaders: rawHeadersOf(req),
    body,
    bodyWasRead: req.readableDidRead || req.readableEnded, // A body without a byte ends unread.
    isAbandoned: () => req.socket?.destroyed,
  }
}

/** Adapters without a wire, such as serverless ones, fill `headers` alone: a key there must not go unseen. */
function rawHeadersOf(req: IncomingMessage): readonly string[] {
  if (req.rawHeaders.length > 0) return req.rawHeaders
  return Object.entries(req.headers).flatMap(([name, value]) => [name, String(value)])
}
