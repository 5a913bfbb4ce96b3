import type { IncomingMessage } from 'node:http'

/** What parsers leave on a request. */
export interface Parsed {
  readonly body?: unknown
  /** Express 4: a parser has read the body. */
  readonly _body?: boolean
  /** Only Express 4's applications have `_router`. */
  readonly app?: { readonly _router?: unknown }
}

/**
 * What a parser made of the body. Express 4's parsers set `{}` on a request that they leave alone, and something else may have read its
 * body, for example into `req.rawBody`: then `{}` would be the body of every such request. They mark those that they read. Without the
 * mark `{}` is a body of two bytes, of a parser of the application's own.
 */
export function parsedBody({ app, body, _body, headers }: IncomingMessage & Parsed): unknown {
  const isUnmarked = app?._router !== undefined && _body !== true && headers['content-length'] !== '2'
  return isUnmarked && isEmptyObject(body) ? undefined : body
}

function isEmptyObject(body: unknown): boolean {
  return typeof body === 'object' && body !== null && !Array.isArray(body) && Object.keys(body).length === 0
}
