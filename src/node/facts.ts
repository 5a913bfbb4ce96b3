import type { IncomingMessage } from 'node:http'
import type { RequestFacts } from '../http/index.js'

/** The facts about a Node request. `request` is passed to option functions; `body` is a parser's result. */
export function factsOf<Req>(req: IncomingMessage, request: Req, target: string, body: unknown): RequestFacts<Req> {
  return {
    request,
    method: req.method ?? '',
    target,
    rawHeaders: rawHeadersOf(req),
    body,
    bodyWasRead: req.readableDidRead || req.readableEnded, // An empty body ends without being read.
    isAbandoned: () => req.socket?.destroyed,
  }
}

/**
 * Adapters without a real connection, for example serverless ones, set only `headers`: their keys must be found too.
 */
function rawHeadersOf(req: IncomingMessage): readonly string[] {
  if (req.rawHeaders.length > 0) return req.rawHeaders
  return Object.entries(req.headers).flatMap(([name, value]) => [name, String(value)])
}
