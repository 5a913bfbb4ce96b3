import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import compression from 'compression'
import connect from 'connect'
import express, { type Express } from 'express'
import session from 'express-session'
import express4 from 'express4'
import helmet from 'helmet'

export type Next = (err?: unknown) => void
// biome-ignore lint/suspicious/noExplicitAny: handlers use what the framework at hand adds to both
export type Step = (req: any, res: any, next: Next) => unknown
// biome-ignore lint/suspicious/noExplicitAny: as above
export type ErrorStep = (err: any, req: any, res: any, next: Next) => unknown

/** A framework that the middleware works in. */
export interface Binding {
  readonly name: string
  /** Whether `res.json`, `res.sendFile` and their like are there. */
  readonly isExpress: boolean
  /** Whether a handler's rejection reaches the application's error handling by itself. */
  readonly seesRejections: boolean
  listener(steps: readonly Step[], onError?: ErrorStep): http.RequestListener
}

const viaExpress = (make: () => Express) => (steps: readonly Step[], onError?: ErrorStep) => {
  const app = make()
  app.use(...steps)
  if (onError !== undefined) app.use(onError)
  return app as unknown as http.RequestListener
}

export const BINDINGS: readonly Binding[] = [
  {
    name: 'Express 5',
    isExpress: true,
    seesRejections: true,
    listener: viaExpress(express),
  },
  {
    name: 'Express 4',
    isExpress: true,
    seesRejections: false,
    listener: viaExpress(express4 as unknown as () => Express),
  },
  {
    name: 'Connect',
    isExpress: false,
    seesRejections: false,
    listener(steps, onError) {
      const app = connect()
      for (const step of steps) app.use(step as connect.NextHandleFunction)
      if (onError !== undefined) app.use(onError as connect.ErrorHandleFunction)
      return app
    },
  },
  {
    name: 'node:http',
    isExpress: false,
    seesRejections: false,
    listener: (steps, onError) => (req, res) => runPlainly(steps, onError, req, res),
  },
]

/** What an application without a framework writes: one step after the other, and one place for errors. */
function runPlainly(
  steps: readonly Step[],
  onError: ErrorStep | undefined,
  req: IncomingMessage,
  res: ServerResponse,
): void {
  const fail = (err: unknown) => {
    if (res.headersSent) return void req.socket.destroy()
    res.statusCode = 500
    res.end(String(err))
  }
  const run = (index: number, err?: unknown): void => {
    if (err !== undefined) {
      if (onError === undefined) fail(err)
      else onError(err, req, res, (late) => fail(late))
      return
    }
    const step = steps[index]
    if (step === undefined) {
      fail(new Error('Nobody answered'))
      return
    }
    let called = false
    const next: Next = (error) => {
      called = true
      run(index + 1, error)
    }
    try {
      step(req, res, next)
    } catch (error) {
      if (called) throw error
      run(index + 1, error)
    }
  }
  run(0)
}

/** What is mounted before the middleware. */
export interface Stack {
  readonly name: string
  steps(): readonly Step[]
}

export const BARE: Stack = { name: 'bare', steps: () => [] }

export const FULL: Stack = {
  name: 'with compression, express-session and helmet',
  steps: () => [
    helmet() as Step,
    compression({ threshold: 0, filter: () => true }) as unknown as Step,
    session({ secret: 'a', resave: true, saveUninitialized: true }) as unknown as Step,
  ],
}

export const BINDINGS_AND_STACKS = BINDINGS.flatMap((binding) =>
  [BARE, FULL].map((stack) => ({ name: `${binding.name}, ${stack.name}`, binding, stack })),
)

/** A parser for any binding, since plain Node has none. */
export const jsonBody: Step = (req, _res, next) => {
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.on('end', () => {
    if (chunks.length > 0) req.body = JSON.parse(Buffer.concat(chunks).toString())
    next()
  })
}

export interface Running {
  readonly port: number
  readonly server: http.Server
  close(): Promise<void>
}

export async function listen(listener: http.RequestListener): Promise<Running> {
  const server = http.createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    port,
    server,
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
