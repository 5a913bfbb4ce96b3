import { Buffer } from 'node:buffer'
import type { RequestListener } from 'node:http'
import express from 'express'
import express4 from 'express4'
import { bodyField, CertainFailure, IdempotencyError, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import type { ErrorStep, Next, Step } from '../../../test/support/bindings.js'
import { answer, describe, PlannedFailure } from './handlers.js'
import { readingOf, samenessOf } from './identity.js'
import type { Journal, Run } from './journal.js'
import { MERCHANTS, scopeOf } from './merchants.js'
import { KINDS, type KindName, LEGACY_FIELD, MOUNTS, type Mount, type MountName, type ServerName } from './mounts.js'

/** What the service needs of its process. */
export interface Outside {
  readonly journal: Journal
  began(request: string, closed: Promise<void>): void
  released(request: string): Promise<void>
}

export interface App {
  readonly listener: RequestListener
  idle(): Promise<unknown>
}

/** The middleware on every mount of one server, over one store. */
export function createApp(server: ServerName, outside: Outside): App {
  const store = new MemoryStore({ maxBytes: 2 ** 30 })
  const protections = new Map<string, ReturnType<typeof protectionOf>>()
  const routes: Record<string, readonly Step[]> = {}
  for (const name of Object.keys(MOUNTS) as MountName[]) {
    const once = protectionOf(MOUNTS[name], store)
    protections.set(name, once)
    routes[`/${name}`] = [authenticate, ...aroundBody(MOUNTS[name], once as Step), handlerOf(server, name, outside)]
  }
  const listener = server === 'http' ? plainly(routes) : viaExpress(server, routes)
  return { listener, idle: () => Promise.all([...protections.values()].map((once) => once.idle())) }
}

function protectionOf(mount: Mount, store: MemoryStore) {
  const { required, legacy, countsBytes, maxAnswerBytes, storingMs } = mount
  const deprecation = {
    deprecatedSince: new Date(0),
    sunset: new Date(1e12),
    link: 'https://example.test/keys',
    whenBoth: legacy === 'field wins' ? 'field' : legacy === 'header wins' ? 'header' : 'reject',
  } as const
  return idempotency({
    store: storingMs === 0 ? store : slowly(store, storingMs),
    // biome-ignore lint/suspicious/noExplicitAny: what no type checker would let through is on trial too
    scope: (req) => MERCHANTS[`${req.headers['x-merchant']}`] as any,
    required,
    maxAnswerBytes,
    leaseMs: 120_000,
    ...(legacy !== 'none' && { legacyKey: bodyField(LEGACY_FIELD, deprecation) }),
    ...(countsBytes && { fingerprint: (req) => (Buffer.isBuffer(req.body) && req.body.length > 0 ? req.body : null) }),
    ...(required && {
      renderProblem: ({ code }) => ({ contentType: 'text/plain; charset=utf-8', body: `✗ "code":"${code}"` }),
    }),
  })
}

/** A store whose commands at the end of a run take their time. */
function slowly(store: MemoryStore, storingMs: number): ConstructorParameters<typeof Proxy<MemoryStore>>[0] {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      if (name !== 'complete' && name !== 'release') return value.bind(target)
      return async (...args: unknown[]) => {
        await new Promise((resolve) => setTimeout(resolve, storingMs))
        return value.apply(target, args)
      }
    },
  })
}

function parsersOf({ countsBytes }: Mount): readonly Step[] {
  const parsers = countsBytes
    ? [express.raw({ type: () => true })]
    : [
        express.json({ strict: false, limit: '200kb' }),
        express.text({ type: 'text/*' }),
        express.raw({ type: 'application/octet-stream' }),
        express.urlencoded({ extended: true }),
      ]
  return parsers as Step[]
}

function aroundBody(mount: Mount, once: Step): readonly Step[] {
  switch (mount.bodyIsRead) {
    case 'before':
      return [...parsersOf(mount), once]
    case 'behind':
      return [once, ...parsersOf(mount)]
    case 'elsewhere':
      return [keepRawBody, once]
  }
}

const keepRawBody: Step = (req, _res, next) => {
  const pieces: Buffer[] = []
  req.on('data', (piece: Buffer) => pieces.push(piece))
  req.once('end', () => {
    req.rawBody = Buffer.concat(pieces)
    next()
  })
}

const authenticate: Step = (req, res, next) => {
  req.clientSocket = req.socket
  if (Object.hasOwn(MERCHANTS, `${req.headers['x-merchant']}`)) return next()
  res.statusCode = 401
  res.end()
}

function handlerOf(server: ServerName, mount: MountName, { journal, began, released }: Outside): Step {
  return (req, res, next) => {
    const path = /^(?:http:\/\/[^/]*)?\/([^/?]*)/.exec(req.url)?.[1] ?? ''
    const kind = (Object.hasOwn(KINDS, path) ? path : 'raw') as KindName
    const request = String(req.headers['x-request'])
    const asked = {
      mount,
      method: req.method,
      target: req.originalUrl ?? req.url,
      keyLines: linesOf(req.rawHeaders),
      body: req.body,
    }
    const run: Run = journal.started({
      request,
      server,
      scope: scopeOf(String(req.headers['x-merchant'])),
      isKeyRequired: MOUNTS[mount].required,
      reading: readingOf(asked),
      protection: req.idempotency,
      socket: req.clientSocket,
    })
    began(request, new Promise((resolve) => req.clientSocket.once('close', resolve)))
    const situation = {
      run,
      request,
      sameness: req.idempotency === undefined ? 'unprotected' : samenessOf(asked),
      mayHaveEffect: () => req.idempotency?.mayHaveEffect(),
      released: () => released(request),
    }
    if (kind === 'throws') {
      run.ended('open')
      throw new PlannedFailure(situation)
    }
    const done = answer(kind, req, res, next, situation)
    // Express 5 sees the rejection by itself; elsewhere a handler must pass it on.
    return server === 'express5' ? done : void done.catch(next)
  }
}

function linesOf(rawHeaders: readonly string[]): Buffer[] {
  const lines: Buffer[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === 'idempotency-key') lines.push(Buffer.from(rawHeaders[i + 1] ?? '', 'latin1'))
  }
  return lines
}

/** Misuse that a service's clients can reach is the service's to answer. */
const ANSWERED = { scope_invalid: 403, body_not_parsed: 415, fingerprint_required: 415 } as const

const onError: ErrorStep = (err, req, res, next) => {
  if (res.headersSent) return req.idempotency === undefined && res.writableEnded ? undefined : next(err)
  const planned = err instanceof CertainFailure ? err.cause : err
  if (planned instanceof PlannedFailure) {
    res.setHeader('X-Planned', 'true')
    describe(res, planned.situation, null)
    // Nothing but Express shows the middleware what was thrown; elsewhere a status has to say that it is certain.
    res.statusCode = req.app === undefined && err !== planned ? err.status : 500
    return res.end('planned')
  }
  const misuse = err instanceof IdempotencyError ? ANSWERED[err.code as keyof typeof ANSWERED] : undefined
  const status = misuse ?? (err.status >= 400 && err.status < 500 ? err.status : 500)
  res.statusCode = status
  res.end(status === 500 ? `${err.stack}` : `${err.message}`)
}

function viaExpress(server: 'express4' | 'express5', routes: Readonly<Record<string, readonly Step[]>>) {
  const app = (server === 'express4' ? (express4 as unknown as typeof express) : express)()
  for (const [path, steps] of Object.entries(routes)) app.use(path, ...steps)
  app.use(onError)
  app.set('env', 'test') // Else it writes each error to the console.
  return app as unknown as RequestListener
}

function plainly(routes: Readonly<Record<string, readonly Step[]>>): RequestListener {
  // biome-ignore lint/suspicious/noExplicitAny: a request as middleware extends it
  return (req: any, res) => {
    const failed: Next = (err) => {
      const hangUp = () => void req.socket.destroy()
      if (err !== undefined) return onError(err, req, res, hangUp)
      res.statusCode = 404
      res.end()
    }
    const match = /^(?:http:\/\/[^/]*)?(\/[^/?]*)(.*)$/s.exec(req.url)
    const steps = routes[match?.[1] ?? '']
    if (steps === undefined) return failed()
    req.originalUrl = req.url
    req.url = match?.[2]
    inTurn(steps, req, res, failed)
  }
}

function inTurn(steps: readonly Step[], req: unknown, res: unknown, done: Next): void {
  const [step, ...rest] = steps
  try {
    if (step === undefined) done()
    else step(req, res, (err) => (err === undefined ? inTurn(rest, req, res, done) : done(err)))
  } catch (error) {
    done(error)
  }
}
