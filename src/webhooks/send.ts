import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { headersByName } from '../core/answer.js'
import type { Answer } from '../core/index.js'

/** Sends an answer, unless somebody else, such as a time limit, has answered. */
export function sendAnswer(res: ServerResponse, { status, headers, body }: Answer): void {
  if (res.headersSent) return
  const bytes = Buffer.from(body ?? [])
  for (const [name, value] of headersByName(headers)) res.setHeader(name, value)
  res.setHeader('Content-Length', bytes.byteLength)
  res.statusCode = status
  res.end(bytes)
}
