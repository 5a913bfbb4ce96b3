import { Buffer } from 'node:buffer'
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Writable } from 'node:stream'
import { headersByName } from '../../http/answer/answer.js'
import type { Head } from '../head.js'
import { type Headers, isSame } from '../headers.js'

/**
 * How Node encodes a head's non-ASCII characters depends on how the body begins: before a string it uses the string's
 * encoding, otherwise Latin-1, and it re-encodes `Content-Disposition` if a length is known. The held answer and its
 * replay begin differently from the handler's response. So Node writes the head once to a response that goes nowhere,
 * and both are sent with one byte per character of the result.
 */

/** How a handler begins its body. */
export interface Beginning {
  /** `writeHead` handed the head over before. */
  readonly isExplicit: boolean
  readonly by: 'write' | 'end' | 'flushHeaders'
  readonly chunk: unknown
  readonly encoding: unknown
}

/** The head as Node sends it before such a beginning, with all headers of the response. */
export function asOnWire(req: IncomingMessage, all: Headers, head: Head, beginning: Beginning): Head {
  const [statusLine = '', ...fields] = linesOf(headBytes(req, all, head, beginning))
  const headers = head.headers.map(([name, value]) => {
    const at = fields.findIndex((field) => field.startsWith(`${name}: `))
    const [field] = at < 0 ? [] : fields.splice(at, 1)
    return [name, field?.slice(name.length + 2) ?? value] as const
  })
  // HTTP/1.1 201 Reason
  const statusMessage = head.statusMessage === '' ? '' : statusLine.slice(13) || head.statusMessage
  return { status: head.status, statusMessage, headers, isAscii: true, isAsOnWire: true }
}

/** Sets the response's headers. Content-Length comes last, because after it Node re-encodes `Content-Disposition`. */
export function setHeaders(res: ServerResponse, { headers }: Pick<Head, 'headers'>): void {
  for (const [name, value] of headersByName(headers))
    if (!isSame(res.getHeader(name), value)) res.setHeader(name, value)
  const length = res.getHeader('Content-Length')
  if (length === undefined) return
  res.removeHeader('Content-Length')
  res.setHeader('Content-Length', length)
}

function headBytes(
  req: IncomingMessage,
  all: Headers,
  { status, statusMessage }: Head,
  { isExplicit, by, chunk, encoding }: Beginning,
): Buffer {
  const pieces: Buffer[] = []
  const sink = new Writable({
    write(bytes, _encoding, done) {
      pieces.push(bytes)
      done()
    },
  })
  const asked = new ServerResponse(req)
  asked.sendDate = false
  for (const [name, value] of Object.values(all)) {
    asked.setHeader(name, Array.isArray(value) ? [...value] : value)
  }
  asked.assignSocket(sink as unknown as Socket)
  asked.statusCode = status
  if (statusMessage !== '') asked.statusMessage = statusMessage
  if (isExplicit) asked.writeHead(status)
  if (by === 'flushHeaders') asked.flushHeaders()
  else asked[by](chunk, encoding as BufferEncoding)
  if (by !== 'end') asked.end()
  return Buffer.concat(pieces)
}

function linesOf(bytes: Buffer): string[] {
  return bytes.toString('latin1', 0, bytes.indexOf('\r\n\r\n')).split('\r\n')
}
