import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import express from 'express'
import { type IdempotencyContext, idempotency } from 'once-per-key'
import { bindOptions } from 'once-per-key/testing'
import { BINDINGS, type ErrorStep, listen, type Step } from '../../../support/bindings.js'
import type { App, Framework, Reply } from '../framework.js'

type Request = IncomingMessage & { body?: unknown; idempotency?: IdempotencyContext }
/** In Express it has more. */
type Response = ServerResponse & {
  readonly json?: (value: unknown) => unknown
  readonly redirect?: (status: number, location: string) => unknown
}

/** Express 4 and 5, Connect and plain `node:http`: the middleware of `once-per-key`. */
export const ON_NODE: readonly Framework[] = BINDINGS.map((binding) => ({
  name: binding.name,
  ...(!binding.isExpress && { hidesErrors: true }),
  async start(app) {
    const once = idempotency(bindOptions(app, (req: Request, name) => req.headers[name]?.toString()))
    const steps = [...PARSERS, ...(app.isProtected ? [once as Step] : []), handlerOf(app)]
    const { onError } = app
    const errorStep: ErrorStep = (error, _req, res, next) => {
      if (res.headersSent || onError === undefined) next(error)
      else answer(res, onError(error))
    }
    return { ...(await listen(binding.listener(steps, onError && errorStep))), once }
  },
}))

/** They work in Connect, and without a framework, too. */
const PARSERS = [
  express.json({ limit: '1mb' }),
  express.urlencoded({ limit: '1mb', extended: false }),
  express.raw({ limit: '1mb' }),
] as Step[]

function handlerOf({ handler }: App): Step {
  return async (req: Request, res: Response, next) => {
    try {
      const { idempotency, body } = req
      answer(res, await handler({ idempotency, json: () => body, bytes: () => body as Uint8Array }))
    } catch (error) {
      next(error)
    }
  }
}

function answer(res: Response, { status, headers = [], json, text, bytes, stream, redirect }: Reply): void {
  for (const [name, value] of headers) res.appendHeader(name, value)
  res.statusCode = status ?? 200
  if (redirect !== undefined) redirectTo(res, status ?? 302, redirect)
  else if (stream !== undefined) pipeline(Readable.from(stream, { objectMode: false }), res).catch(() => {})
  else if (json !== undefined) sendJson(res, json)
  else res.end(bytes ?? text)
}

function redirectTo(res: Response, status: number, location: string): void {
  if (res.redirect !== undefined) res.redirect(status, location)
  else res.writeHead(status, { Location: location, 'Content-Type': 'text/plain' }).end(STATUS_CODES[status])
}

function sendJson(res: Response, value: unknown): void {
  if (res.json !== undefined) res.json(value)
  else res.setHeader('Content-Type', 'application/json').end(JSON.stringify(value))
}
