import type { ServerResponse } from 'node:http'

/**
 * After a replay or a refusal was sent, Nest goes on as for any request: it sends what the interceptors return, or a filter answers an
 * exception. On a response that has ended that throws; here it does nothing.
 */
export function silence(response: ServerResponse): void {
  Object.assign(response, SILENT)
}

function ignore<This>(this: This): This {
  return this
}

const SILENT = {
  setHeader: ignore,
  setHeaders: ignore,
  appendHeader: ignore,
  removeHeader: ignore,
  writeHead: ignore,
  flushHeaders: ignore,
  write: () => true,
  end: ignore,
  /** Of Express: a view need not be made. */
  render: ignore,
}
