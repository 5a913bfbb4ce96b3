import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

export type FetchHandler = (request: Request) => Response | Promise<Response>

/** Serves a handler of Fetch on `node:http`, by the standard's words and no more. A handler that throws is a 500. */
export function fetchListener(handler: FetchHandler): RequestListener {
  return async (req, res) => {
    try {
      await send(await handler(requestOf(req, res)), res)
    } catch {
      if (res.headersSent) res.destroy()
      else res.writeHead(500).end('Internal Server Error')
    }
  }
}

function requestOf(req: IncomingMessage, res: ServerResponse): Request {
  const { method = 'GET', headers, rawHeaders, url = '/' } = req
  const lines: [string, string][] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) lines.push([rawHeaders[i] as string, rawHeaders[i + 1] as string])
  const left = new AbortController()
  res.on('close', () => {
    if (!res.writableFinished) left.abort(new Error('The client has left.'))
  })
  const hasBody = method !== 'GET' && method !== 'HEAD'
  return new Request(`http://${headers.host ?? 'localhost'}${url}`, {
    method,
    headers: lines,
    signal: left.signal,
    ...(hasBody && { body: Readable.toWeb(req) as ReadableStream<Uint8Array<ArrayBuffer>>, duplex: 'half' as const }),
  })
}

async function send(response: Response, res: ServerResponse): Promise<void> {
  const { status, statusText, headers, body } = response
  const lines = [...headers].flat()
  if (statusText === '') res.writeHead(status, lines)
  else res.writeHead(status, statusText, lines)
  if (body === null) return void res.end()
  const reader = body.getReader()
  res.on('close', () => void reader.cancel(new Error('The client has left.')).catch(() => {}))
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    if (!res.write(next.value)) await flowing(res)
  }
  res.end()
}

/** Until more may be written, or nobody reads any more. */
function flowing(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const flows = () => {
      res.off('drain', flows).off('close', flows)
      resolve()
    }
    res.on('drain', flows).on('close', flows)
  })
}
