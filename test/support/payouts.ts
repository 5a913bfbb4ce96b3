import express, { type Express, type NextFunction, type Request, type RequestHandler, type Response } from 'express'
import express4 from 'express4'
import { type IdempotencyOptions, type IdempotencyRequest, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { onTestFinished } from 'vitest'
import { listen } from './bindings.js'
import { connectTo } from './raw-client.js'

export const VERSIONS = [
  { version: 'Express 4', make: express4 as unknown as typeof express },
  { version: 'Express 5', make: express },
]

export type Options = Partial<IdempotencyOptions<IdempotencyRequest>>

export interface Sent {
  readonly method?: string
  readonly target?: string
  /** The lines of the key's header, as they are; text as UTF-8. */
  readonly keys?: readonly (string | Buffer)[]
  readonly headers?: readonly string[]
  readonly body?: string | Buffer | null
  readonly chunked?: boolean
  /** `null`: without a content type. */
  readonly type?: string | null
}

interface Setting {
  readonly options?: Options
  /** Mounted before the middleware, instead of `express.json`. */
  readonly parsers?: readonly RequestHandler[]
}

/** An application with one path, for one test, on a free port; its error handler tells errors by their code. */
export async function payouts(make: typeof express, { options, parsers }: Setting = {}) {
  let runs = 0
  const app: Express = make()
  const once = idempotency({ store: new MemoryStore(), scope: (req) => req.get('X-Merchant') ?? 'acme', ...options })
  const create = (req: Request, res: Response) => {
    runs++
    res.status(201).json({ run: runs, key: req.idempotency?.key ?? null })
  }
  const json = make.json({ limit: '10mb', strict: false })
  for (const method of ['post', 'get', 'put'] as const) app[method]('/payouts', ...(parsers ?? [json]), once, create)
  app.use((error: Error & { code?: string; status?: number }, _req: Request, res: Response, _next: NextFunction) => {
    res.status(error.status ?? 500).json({ code: error.code, message: error.message })
  })
  const { port, close } = await listen(app)
  onTestFinished(close)

  async function post(sent: Sent = {}) {
    const connection = connectTo(port)
    connection.socket.write(bytesOf(sent))
    const reply = await connection.reply(sent.method)
    const json = JSON.parse(reply.body.toString() || 'null') as Record<string, unknown> | null
    const replayed = reply.header('Idempotent-Replayed') === 'true'
    return { status: reply.status, code: json?.code, json, header: reply.header, lines: reply.lines, replayed }
  }

  return { post, runs: () => runs }
}

function bytesOf(sent: Sent): Buffer {
  const { method = 'POST', target = '/payouts', keys = ['order-1'], headers = [], body = '{"amount":100}' } = sent
  const content = body === null ? null : Buffer.from(body as string)
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: test', 'Connection: close', ...headers]
  if (content !== null) {
    lines.push(sent.chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${content.length}`)
    if (sent.type !== null) lines.push(`Content-Type: ${sent.type ?? 'application/json'}`)
  }
  const parts: Buffer[] = lines.map((line) => Buffer.from(`${line}\r\n`))
  for (const key of keys) parts.push(Buffer.from('Idempotency-Key: '), Buffer.from(key as string), Buffer.from('\r\n'))
  parts.push(Buffer.from('\r\n'))
  if (content !== null) parts.push(...(sent.chunked ? chunksOf(content) : [content]))
  return Buffer.concat(parts)
}

function chunksOf(content: Buffer): Buffer[] {
  return [Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from('\r\n0\r\n\r\n')]
}
