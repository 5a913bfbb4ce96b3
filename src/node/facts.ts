import type { IncomingMessage } from 'node:http'
import type { RequestFacts } from '../http/index.js'

/** The facts about a Node request. `request` is passed to option functions; `body` is a parser's result. */
export class NodeFacts<Req> implements RequestFacts<Req> {
  readonly request: Req
  readonly target: string
  readonly body: unknown
  readonly #req: IncomingMessage

  constructor(req: IncomingMessage, request: Req, target: string, body: unknown) {
    this.#req = req
    this.request = request
    this.target = target
    this.body = body
  }

  get method(): string {
    return this.#req.method ?? ''
  }

  get rawHeaders(): readonly string[] {
    return rawHeadersOf(this.#req)
  }

  get bodyWasRead(): boolean {
    return this.#req.readableDidRead || this.#req.readableEnded // An empty body ends without being read.
  }

  isAbandoned(): boolean {
    return this.#req.socket?.destroyed
  }
}

/**
 * Adapters without a real connection, for example serverless ones, set only `headers`: their keys must be found too.
 */
function rawHeadersOf(req: IncomingMessage): readonly string[] {
  if (req.rawHeaders.length > 0) return req.rawHeaders
  return Object.entries(req.headers).flatMap(([name, value]) => [name, String(value)])
}
